"""Reads a rendered HorizontalPodAutoscaler, as strictly as the simulation needs it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal

import yaml

UNITS = {"n": "1e-9", "u": "1e-6", "m": "1e-3", "": "1", "k": "1e3", "M": "1e6", "G": "1e9",
         "Ki": "1024", "Mi": str(1024**2), "Gi": str(1024**3)}


def quantity(text: object) -> float:
    """A Kubernetes quantity: 6, "6", "800m", "1k"."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([numkMG]|[KMG]i)?", str(text))
    if not found:
        raise ValueError(f"not a quantity: {text!r}")
    return float(Decimal(found[1]) * Decimal(UNITS[found[2] or ""]))


@dataclass(frozen=True)
class Policy:
    kind: str  # Percent | Pods
    value: int
    period: int


@dataclass(frozen=True)
class Rules:
    window: int
    select: str  # Max | Min | Disabled
    policies: tuple[Policy, ...]


# What the API server fills in.
UP = Rules(0, "Max", (Policy("Pods", 4, 15), Policy("Percent", 100, 15)))
DOWN = Rules(300, "Max", (Policy("Percent", 100, 15),))


@dataclass(frozen=True)
class Metric:
    kind: str  # External | Pods
    name: str
    target_kind: str  # AverageValue | Value
    target: float


@dataclass(frozen=True)
class Hpa:
    name: str
    min: int
    max: int
    metrics: tuple[Metric, ...]
    up: Rules = field(default=UP)
    down: Rules = field(default=DOWN)

    @property
    def backlog(self) -> Metric:
        """The metric that counts messages."""
        (metric,) = (metric for metric in self.metrics if metric.kind == "External")
        return metric


def _rules(given: dict | None, default: Rules) -> Rules:
    if not given:
        return default
    policies = tuple(Policy(one["type"], int(one["value"]), int(one["periodSeconds"])) for one in given.get("policies") or ())
    window = given.get("stabilizationWindowSeconds")
    return Rules(default.window if window is None else int(window), given.get("selectPolicy", default.select),
                 policies or default.policies)


def _metric(given: dict) -> Metric:
    body = given[given["type"].lower()]
    target = body["target"]
    kind = target["type"]
    if given["type"] not in ("External", "Pods") or kind not in ("AverageValue", "Value"):
        raise ValueError(f"the simulation knows no metric of type {given['type']} with target {kind}")
    value = quantity(target["averageValue" if kind == "AverageValue" else "value"])
    if not value > 0 or math.isinf(value):
        raise ValueError(f"a target must be above 0: {value}")
    return Metric(given["type"], body["metric"]["name"], kind, value)


def hpa(document: dict) -> Hpa:
    """The autoscaler in one manifest."""
    if document.get("apiVersion") != "autoscaling/v2":
        raise ValueError(f"apiVersion is {document.get('apiVersion')!r}, not autoscaling/v2")
    spec = document["spec"]
    behavior = spec.get("behavior") or {}
    return Hpa(
        name=document["metadata"]["name"],
        # Left out where floors write it; the API server then says 1.
        min=int(spec.get("minReplicas", 1)),
        max=int(spec["maxReplicas"]),
        metrics=tuple(_metric(one) for one in spec["metrics"]),
        up=_rules(behavior.get("scaleUp"), UP),
        down=_rules(behavior.get("scaleDown"), DOWN),
    )


def read(path: str) -> Hpa:
    """The one autoscaler in a file of manifests, such as the whole output of a chart."""
    with open(path, encoding="utf-8") as file:
        found = [one for one in yaml.safe_load_all(file) if one and one.get("kind") == "HorizontalPodAutoscaler"]
    if len(found) != 1:
        raise ValueError(f"{path}: {len(found)} autoscalers, not one")
    return hpa(found[0])
