"""The value sets of charts/bellhop/ci, and small ones for single tests."""

from __future__ import annotations

import copy
from functools import cache

import yaml

from helm import CHART

CI = CHART / "ci"
KUBES = ("1.30.0", "1.33.0", "1.35.0", "1.37.0")


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(path.name.removesuffix("-values.yaml") for path in CI.glob("*-values.yaml")))


def scenario(name: str) -> dict:
    return yaml.safe_load((CI / f"{name}-values.yaml").read_text())


def merge(base: dict, over: dict) -> dict:
    """Maps on maps; anything else replaces."""
    merged = copy.deepcopy(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def minimal(**over) -> dict:
    """One pod on PostgreSQL that renders, with what differs."""
    return merge(scenario("minimal"), over)


def hpa(**over) -> dict:
    """Scaled on the backlog with 8 handlers at once, with what differs."""
    base = minimal(config={"worker": {"concurrency": 8}}, autoscaling={"mode": "hpa"})
    return merge(base, over)


def single(backend: str = "memory", **over) -> dict:
    """A store for one process, with what differs."""
    return merge(minimal(config={"store": {"backend": backend}}), over)
