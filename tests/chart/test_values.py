"""Values, templates and schema agree, and the schema is strict."""

from __future__ import annotations

import json
import re

import pytest
import yaml

import helm
from scenarios import minimal

VALUES = yaml.safe_load((helm.CHART / "values.yaml").read_text())
SCHEMA = json.loads((helm.CHART / "values.schema.json").read_text())
TEMPLATES = {
    path.relative_to(helm.CHART).as_posix(): path.read_text()
    for path in (helm.CHART / "templates").rglob("*")
    if path.is_file()
}

# Written for parent charts, and refused with a hint.
NOT_VALUES = {
    "global", "enabled", "autoscaling.enabled", "autoscaling.targetCPUUtilizationPercentage", "config.subscription",
    "config.projectId", "config.concurrency", "postgres.poolSize", "metrics.serviceMonitor",
}
# The daemon's keys that the chart only passes on, or asks for where they are given.
PASSED_ON = re.compile(r"^config\.")


def leaves(tree: dict, prefix: str = "") -> set[str]:
    found = set()
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            found |= leaves(value, f"{path}.")
        else:
            found.add(path)
    return found


def declared(path: str) -> bool:
    at = VALUES
    for key in path.split("."):
        if not isinstance(at, dict) or key not in at:
            return False
        at = at[key]
    return True


def resolve(node: dict) -> dict:
    while "$ref" in node:
        node = SCHEMA["definitions"][node["$ref"].rsplit("/", 1)[1]]
    return node


def nodes(node: dict, path: str = ""):
    """Every schema node that is an object with properties, with its path."""
    node = resolve(node)
    if "properties" in node:
        yield path, node
        for key, inner in node["properties"].items():
            yield from nodes(inner, f"{path}.{key}" if path else key)
    for inner in (node.get("items"), node.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from nodes(inner, f"{path}[]")


USED = {
    match.removeprefix(".Values.")
    for text in TEMPLATES.values()
    for match in re.findall(r"\.Values(?:\.\w+)+", text)
} | {
    f"{section}.{key}"
    for text in TEMPLATES.values()
    for section, key in re.findall(r'hasKey \.Values\.(\w+) "(\w+)"', text)
}


def test_every_value_used_is_declared():
    undeclared = {path for path in USED if not declared(path) and path not in NOT_VALUES}

    # Secrets in files are keys of the daemon without a default.
    assert undeclared == {
        "config.worker.drain_may_cut", "config.store.url_file", "config.store.migrate_url_file",
        "config.handler.signing_secret_file", "config.handler.bearer_token_file",
    }


def test_every_declared_value_is_used():
    def used(leaf: str) -> bool:
        keys = leaf.split(".")
        return any(".".join(keys[:end]) in USED for end in range(1, len(keys) + 1))

    unused = {leaf for leaf in leaves(VALUES) if not used(leaf)}

    assert unused == set()


def test_templates_name_values_in_full():
    for name, text in TEMPLATES.items():
        assert not re.search(r"\.Values(?!\.\w)", text), f"{name} hides which values it uses"


def test_schema_and_values_have_the_same_keys():
    for path, node in nodes(SCHEMA):
        if "[]" in path or (path and not declared(path)):
            continue
        at = VALUES
        for key in filter(None, path.split(".")):
            at = at[key]
        if not isinstance(at, dict):
            continue
        given = {f"{path}.{key}" if path else key for key in at}
        known = {f"{path}.{key}" if path else key for key in node["properties"]}
        assert given <= known
        optional = {key for key in known - given if not PASSED_ON.match(key)}
        free = path in {"autoscaling.keda.authenticationRef", "autoscaling.keda.fallback", "affinity", "lifecycle"}
        free = free or path.startswith("autoscaling.behavior") or path.endswith("resources")
        assert free or optional <= NOT_VALUES, path


def test_objects_of_the_schema_are_closed():
    for path, node in nodes(SCHEMA):
        assert node.get("additionalProperties") is False, path


def test_what_is_declared_is_required_so_that_null_can_not_take_it_away():
    for path, node in nodes(SCHEMA):
        if "[]" in path or (path and not declared(path)):
            continue
        at = VALUES
        for key in filter(None, path.split(".")):
            at = at[key]
        if isinstance(at, dict) and not path.startswith("autoscaling.behavior") and not path.endswith("resources"):
            assert set(at) <= set(node.get("required", [])), path


def refused_by_schema(values: dict) -> str:
    with pytest.raises(helm.Refused) as caught:
        helm.render(values)
    assert "values don't meet the specifications of the schema" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "over",
    [
        {"replicaCount": "2"},
        {"replicas": 2},
        {"autoscaling": {"mode": "vpa"}},
        {"autoscaling": {"minReplicas": -1}},
        {"autoscaling": {"floors": [{"name": "Office", "schedule": "* * * * *", "end": "* * * * *", "minReplicas": 3}]}},
        {"autoscaling": {"floors": [{"name": "office", "schedule": "* * * * *", "minReplicas": 3}]}},
        {"autoscaling": {"floors": [{"name": "office", "schedule": "TZ=Europe/Berlin 0 8 * * *", "end": "0 9 * * *", "minReplicas": 3}]}},
        {"autoscaling": {"floors": [{"name": "office", "schedule": "0 8 * * *", "end": "@daily", "minReplicas": 3}]}},
        {"image": {"repository": "registry.example/bellhop:1.0"}},
        {"metrics": {"podMonitor": {"interval": "1 minute"}}},
        {"metrics": {"prometheusRule": {"runbookBaseUrl": "wiki/runbooks"}}},
        {"networkPolicy": {"handlerPort": "http"}},
        {"networkPolicy": {"handlerPort": 0}},
        {"config": {"worker": {"concurency": 3}}},
        {"config": {"handler": {"timeout": 60}}},
        {"config": {"handler": {"timeout": "60"}}},
        {"config": {"handler": {"url": "handler:9000"}}},
        {"config": {"store": {"backend": "redis"}}},
        {"config": {"store": {"backend": "auto"}}},
        {"image": {"digest": "sha256:123"}},
        {"terminationGracePeriodSeconds": "70"},
        {"strategy": {"rollingUpdate": {"maxSurge": "a quarter"}}},
        {"migrations": {"mode": "later"}},
        {"metrics": {"podMonitor": {"renderMode": "maybe"}}},
        {"podAntiAffinityPreset": "very hard"},
    ],
    ids=str,
)
def test_wrong_types_names_and_ranges_are_refused(over):
    refused_by_schema(minimal(**over))


@pytest.mark.parametrize(
    "over",
    [
        {"config": {"store": {"url": "postgres://u:p@h/d"}}},
        {"config": {"store": {"migrate_url": "postgres://u:p@h/d"}}},
        {"config": {"handler": {"signing_secret": "x"}}},
        {"config": {"handler": {"bearer_token": "x"}}},
        {"postgres": {"password": "x"}},
    ],
    ids=str,
)
def test_secrets_are_refused(over):
    refused_by_schema(minimal(**over))


@pytest.mark.parametrize("over", [{"config": {"store": {"replicas": 3}}}, {"config": {"store": {"single_process": True}}}], ids=str)
def test_what_the_chart_computes_is_refused(over):
    refused_by_schema(minimal(**over))


@pytest.mark.parametrize("key", sorted(VALUES))
def test_null_for_a_value_is_refused_and_does_not_crash(key):
    message = refused_by_schema(minimal(**{key: None}))

    assert key in message


@pytest.mark.parametrize("path", ["config.worker", "config.handler.timeout", "autoscaling.behavior", "metrics.podMonitor", "strategy.rollingUpdate"])
def test_null_inside_is_refused_and_does_not_crash(path):
    over = None
    for key in reversed(path.split(".")):
        over = {key: over}

    refused_by_schema(minimal(**over))


@pytest.mark.parametrize(
    "over",
    [
        {"image": {"repository": "registry.example:5000/team/bellhop"}},
        {"autoscaling": {"mode": "hpa", "floors": [{"name": "office", "schedule": "0 8 * * MON-FRI", "end": "*/5 9,10 * * *", "timezone": "America/Argentina/Buenos_Aires", "minReplicas": 3}]}},
    ],
    ids=str,
)
def test_their_neighbours_are_not(over):
    assert helm.render(minimal(**over)).objects


def test_a_parent_chart_may_say_global_and_enabled():
    assert helm.render(minimal(**{"global": {"imageRegistry": "x"}, "enabled": True})).objects


def test_nobody_may_write_anything_else_at_the_root():
    assert "additional properties" in refused_by_schema(minimal(common={}))
