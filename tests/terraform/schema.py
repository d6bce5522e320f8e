#!/usr/bin/env python3
"""Writes google.json: what hashicorp/google calls the arguments of the resources that deploy/terraform uses.

    pip download --no-deps --only-binary :all: cdktn-provider-google==21.1.0      # bindings of hashicorp/google 8.7.0
    tests/terraform/schema.py cdktn_provider_google-21.1.0-*.whl > tests/terraform/google.json

The bindings are generated from the provider's own schema. They are parsed, not imported. Run it again when the module uses
another resource, or another version of the provider.
"""
import ast
import json
import re
import sys
import zipfile

RESOURCES = {
    "google_monitoring_alert_policy": "monitoring_alert_policy",
    "google_project_iam_member": "project_iam_member",
    "google_project_service": "project_service",
    "google_pubsub_subscription": "pubsub_subscription",
    "google_pubsub_subscription_iam_member": "pubsub_subscription_iam_member",
    "google_pubsub_topic": "pubsub_topic",
    "google_pubsub_topic_iam_member": "pubsub_topic_iam_member",
    "google_service_account": "service_account",
    "google_service_account_iam_member": "service_account_iam_member",
}
DATA_SOURCES = {"google_project": "data_google_project"}

# Arguments of Terraform itself, and of every resource.
OF_TERRAFORM = {"connection", "count", "depends_on", "for_each", "id", "lifecycle", "provider", "provisioners", "timeouts"}
# Properties of the bindings, not of the resource.
OF_BINDINGS = {"cdktf_stack", "fqn", "node", "friendly_unique_id", "raw_overrides", "dependencies"}


def kind(annotation):
    """The Terraform type of an argument, or None for a nested block."""
    if "Mapping[builtins.str, builtins.str]" in annotation or "StringMap" in annotation:
        return "map"
    if "Sequence[builtins.str]" in annotation:
        return "list"
    if "builtins.bool" in annotation:
        return "bool"
    if "jsii.Number" in annotation:
        return "number"
    if "builtins.str" in annotation and "Dict[" not in annotation:
        return "string"
    return None


def members(node, wanted):
    return [member for member in node.body if isinstance(member, ast.FunctionDef) and wanted(member)]


def arguments(node):
    for init in members(node, lambda member: member.name == "__init__"):
        for argument, default in zip(init.args.kwonlyargs, init.args.kw_defaults):
            yield argument.arg, ast.unparse(argument.annotation), default is None


def block(classes, node, but=frozenset()):
    """`string`, `string!` (required), or {...} for a nested block, whose "[]" tells how often it may stand: 0+, 1+, 0-1, 1."""
    found = {}
    for name, annotation, required in arguments(node):
        if name in but:
            continue
        simple = kind(annotation)
        nested = next((word for word in re.findall(r"'(\w+)'", annotation) if word in classes), None)
        if simple:
            found[name] = simple + "!" * required
        elif nested:
            many = "Sequence" in annotation
            found[name] = {"[]": ("1" if required else "0") + ("+" if many else "" if required else "-1")}
            found[name].update(block(classes, classes[nested]))
    return found


def schema(source):
    classes = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
    main = next(node for node in classes.values() if any(
        isinstance(member, ast.FunctionDef) and member.name == "TF_RESOURCE_TYPE" for member in node.body))
    found = block(classes, main, OF_TERRAFORM)
    is_property = lambda member: any(ast.unparse(line) == "builtins.property" for line in member.decorator_list)
    for member in members(main, is_property):
        name, simple = member.name, kind(ast.unparse(member.returns))
        known = name in found or name in OF_TERRAFORM | OF_BINDINGS
        if simple and not known and not name.endswith("_input"):
            found[name] = simple + " computed"
    return found


def main(path):
    with zipfile.ZipFile(path) as wheel:
        read = lambda module: wheel.read(f"cdktn_provider_google/{module}/__init__.py").decode()
        found = {
            "resources": {name: schema(read(module)) for name, module in RESOURCES.items()},
            "data_sources": {name: schema(read(module)) for name, module in DATA_SOURCES.items()},
        }
    json.dump(found, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main(sys.argv[1])
