#!/usr/bin/env python3
"""Parses deploy/terraform, and holds its names to what there is: arguments of resources to google.json, variables, locals and
resources to where they are declared, what the examples give to what the module asks for. Needs no terraform.

    names.py MODULE
"""
import json
import pathlib
import re
import sys

import hcl2

KNOWN = json.loads(pathlib.Path(__file__).with_name("google.json").read_text())

# What every resource may have, from Terraform itself.
OF_TERRAFORM = {"count", "depends_on", "for_each", "lifecycle", "provider", "timeouts"}
OF_MODULES = OF_TERRAFORM | {"providers", "source", "version"}
REFERENCE = re.compile(r"(?<![\w.])(?:(?:var|local|module)\.\w+|(?:data\.)?google_\w+\.\w+)")
DECLARED = {"variable": "var", "locals": "local", "module": "module", "resource": "", "data": "data"}


def bare(name):
    return name.strip('"')


def entries(blocks):
    """Name and content of each labelled block."""
    for block in blocks:
        for name, content in block.items():
            if isinstance(content, dict):
                yield bare(name), content


def arguments(body):
    return {name: value for name, value in body.items() if not name.startswith("__")}


def unfold(body):
    """The body with its dynamic blocks in their places, each as one that may not be there."""
    found = arguments(body)
    maybe = set()
    for name, content in entries(found.pop("dynamic", [])):
        found[name] = content["content"]
        maybe.add(name)
    return found, maybe


def check_body(where, body, known, free=frozenset()):
    found, maybe = unfold(body)
    for name, value in found.items():
        told = known.get(name)
        if name in free:
            continue
        if told is None:
            yield f"{where}: there is no {name}"
        elif isinstance(told, dict):
            yield from check_blocks(f"{where}.{name}", value, told, name in maybe)
        elif told.endswith(" computed"):
            yield f"{where}: {name} cannot be set"
    for name, told in known.items():
        needed = told["[]"].startswith("1") if isinstance(told, dict) else told.endswith("!")
        if name != "[]" and needed and name not in found:
            yield f"{where}: {name} is missing"


def check_blocks(where, value, told, maybe):
    if not isinstance(value, list):
        yield f"{where}: is a block, not a value"
        return
    if not told["[]"].endswith("+") and len(value) > 1 and not maybe:
        yield f"{where}: may be there once"
    for block in value:
        yield from check_body(where, block, {name: inner for name, inner in told.items() if name != "[]"})


def check_resources(place, parsed):
    for kind, table in (("resource", "resources"), ("data", "data_sources")):
        for provided, named in entries(parsed.get(kind, [])):
            for name, body in named.items():
                where = f"{place}: {provided}.{bare(name)}"
                if not provided.startswith("google_"):
                    continue
                if provided not in KNOWN[table]:
                    yield f"{where}: google.json does not know it; add it to schema.py and write google.json again"
                    continue
                yield from check_body(where, body, KNOWN[table][provided], OF_TERRAFORM)


def check_calls(place, parsed, folder, module, asked):
    for name, call in entries(parsed.get("module", [])):
        if (folder / bare(call["source"])).resolve() != module.resolve():
            continue
        given = set(arguments(call)) - OF_MODULES
        for wrong in sorted(given - set(asked)):
            yield f"{place}: module.{name}: the module has no variable {wrong}"
        for missing in sorted({one for one, body in asked.items() if "default" not in body} - given):
            yield f"{place}: module.{name}: {missing} is missing"


def declared(folder):
    """What may be referred to in a folder, such as var.project_id."""
    found = set()
    for path in folder.glob("*.tf"):
        parsed = load(path)
        for kind, prefix in DECLARED.items():
            for block in parsed.get(kind, []):
                for name, content in arguments(block).items():
                    if kind in ("resource", "data"):
                        found |= {".".join(filter(None, (prefix, bare(name), bare(inner)))) for inner in arguments(content)}
                    else:
                        found.add(f"{prefix}.{bare(name)}")
    return found


def references(value):
    """What expressions refer to; the parser leaves them as text in ${...}."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)
    elif isinstance(value, str):
        for expression in re.findall(r"\$\{(.*)\}", value, re.DOTALL):
            yield from REFERENCE.findall(expression)


def load(path):
    try:
        with path.open(encoding="utf-8") as file:
            return hcl2.load(file)
    except Exception as error:  # the parser has many
        sys.exit(f"{path}: {error}")


def main():
    module = pathlib.Path(sys.argv[1])
    asked = {name: body for path in module.glob("*.tf") for name, body in entries(load(path).get("variable", []))}
    problems = []
    count = 0
    for folder in [module, *sorted((module / "examples").iterdir())]:
        known = declared(folder)
        for path in sorted(folder.glob("*.tf")):
            count += 1
            place = path.relative_to(module)
            parsed = load(path)
            problems += check_resources(place, parsed)
            problems += check_calls(place, parsed, folder, module, asked)
            problems += [f"{place}: {name} is not declared" for name in sorted(set(references(parsed)) - known)]
    for path in sorted((module / "tests").glob("*.tftest.hcl")):
        count += 1
        for run, body in entries(load(path).get("run", [])):
            for wrong in sorted({name for given in body.get("variables", []) for name in arguments(given)} - set(asked)):
                problems.append(f"{path.relative_to(module)}: run.{run}: the module has no variable {wrong}")
    if problems:
        sys.exit("\n".join(problems))
    print(f"Names fit: {count} files of {module.name}")


if __name__ == "__main__":
    main()
