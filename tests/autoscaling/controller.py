"""The arithmetic of Kubernetes' HPA controller (pkg/controller/podautoscaler), as far as bellhop's manifests reach.

One call of `Controller.sync` is one reconcile: metrics to a wish, the wish through stabilization windows and policies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from manifest import Hpa, Metric, Policy, Rules

TOLERANCE = 0.1


@dataclass(frozen=True)
class PodsSample:
    """A metric of pods: the values of those that have one, and how many have none yet."""

    values: tuple[float, ...]
    missing: int


@dataclass
class Controller:
    hpa: Hpa
    wishes: list[tuple[float, int]] = field(default_factory=list)
    ups: list[tuple[float, int]] = field(default_factory=list)
    downs: list[tuple[float, int]] = field(default_factory=list)

    def sync(self, now: float, replicas: int, ready: int, metrics: Mapping[str, float | PodsSample | None]) -> int:
        """The number of replicas from now on. A metric that can not be read is None."""
        hpa = self.hpa
        if replicas == 0:
            return 0
        if not self.wishes:
            self.wishes.append((now, replicas))
        if replicas > hpa.max:
            wish = hpa.max
        elif replicas < hpa.min:
            wish = hpa.min
        else:
            values = [(metric, metrics.get(metric.name)) for metric in hpa.metrics]
            asked = [self._ask(metric, value, replicas, ready) for metric, value in values if value is not None]
            if not asked:
                return replicas
            wish = max(asked)
            if len(asked) < len(values) and wish < replicas:
                return replicas  # one metric is unreadable: never down
            wish = self._limit(now, replicas, self._stabilize(now, replicas, wish))
        self._record(now, replicas, wish)
        return wish

    @staticmethod
    def _ask(metric: Metric, value: float | PodsSample, replicas: int, ready: int) -> int:
        if isinstance(value, PodsSample):
            return _pods(metric.target, value, replicas)
        if metric.target_kind == "AverageValue":
            if abs(value / (metric.target * replicas) - 1.0) <= TOLERANCE:
                return replicas
            return math.ceil(value / metric.target)
        ratio = value / metric.target
        return replicas if abs(ratio - 1.0) <= TOLERANCE else math.ceil(ratio * ready)

    def _stabilize(self, now: float, replicas: int, wish: int) -> int:
        up = min([wish, *(wished for at, wished in self.wishes if at > now - self.hpa.up.window)])
        down = max([wish, *(wished for at, wished in self.wishes if at > now - self.hpa.down.window)])
        keep = now - max(self.hpa.up.window, self.hpa.down.window)
        self.wishes = [one for one in self.wishes if one[0] > keep] + [(now, wish)]
        return min(max(replicas, up), down)

    def _limit(self, now: float, replicas: int, wish: int) -> int:
        if wish > replicas:
            limit = max(replicas, self._reach(now, replicas, self.hpa.up, up=True))
            return min(wish, limit, self.hpa.max)
        if wish < replicas:
            limit = min(replicas, self._reach(now, replicas, self.hpa.down, up=False))
            return max(wish, limit, self.hpa.min)
        return replicas

    def _reach(self, now: float, replicas: int, rules: Rules, *, up: bool) -> int:
        if rules.select == "Disabled":
            return replicas
        reached = [self._reach_by(now, replicas, policy, up=up) for policy in rules.policies]
        return max(reached) if up == (rules.select == "Max") else min(reached)

    def _reach_by(self, now: float, replicas: int, policy: Policy, *, up: bool) -> int:
        added = sum(change for at, change in self.ups if at > now - policy.period)
        removed = sum(change for at, change in self.downs if at > now - policy.period)
        start = replicas - added + removed
        if up:
            return start + policy.value if policy.kind == "Pods" else math.ceil(start * (1 + policy.value / 100))
        return start - policy.value if policy.kind == "Pods" else int(start * (1 - policy.value / 100))

    def _record(self, now: float, replicas: int, wish: int) -> None:
        if wish > replicas:
            self.ups.append((now, wish - replicas))
        elif wish < replicas:
            self.downs.append((now, replicas - wish))


def _pods(target: float, sample: PodsSample, replicas: int) -> int:
    """The average over pods; those without a value count against the direction of the change."""
    if not sample.values:
        return replicas
    ratio = sum(sample.values) / len(sample.values) / target
    if not sample.missing:
        return replicas if abs(ratio - 1.0) <= TOLERANCE else math.ceil(ratio * len(sample.values))
    filled = [*sample.values, *[0.0 if ratio > 1.0 else target] * sample.missing]
    new = sum(filled) / len(filled) / target
    if abs(new - 1.0) <= TOLERANCE or (ratio < 1.0) != (new < 1.0):
        return replicas
    wish = math.ceil(new * len(filled))
    return replicas if (new < 1.0 < wish / replicas) or (new > 1.0 > wish / replicas) else wish
