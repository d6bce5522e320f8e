"""A subscription, its workers and Cloud Monitoring, in steps of one second.

What is modelled: arrivals, handlers with a spread, slots, deliveries a process holds beyond its slots, pods that take
time to start and that drain when they are removed, a gauge that is sampled and seen late. What is not: nodes that have to
be made first, handlers that slow each other down, failures (a number of messages may be stuck in back-off).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from controller import Controller, PodsSample
from manifest import Hpa

SYNC = 15


@dataclass(frozen=True)
class Setting:
    """Everything but the autoscaler. Times in seconds."""

    handler: float = 30.0
    # Shortest and longest handler, as shares of `handler`.
    spread: tuple[float, float] = (0.9, 1.1)
    slots: int = 8
    # Deliveries a process takes beyond its slots: bellhop's parking, by default the larger of 16 and its slots.
    ahead: int = 16
    pod_start: int = 25
    sample_every: int = 60
    # How long after it was taken a sample is seen: each between these.
    visible_after: tuple[int, int] = (60, 120)
    # When within a minute samples are taken, and when within a quarter of it the controller looks.
    sample_phase: int = 0
    sync_phase: int = 7
    # Messages that are always in back-off.
    stuck: int = 0
    # What a scrape and prometheus-adapter take.
    pods_metric_lag: int = 30
    # Evenly spaced arrivals instead of random ones.
    even: bool = False
    seed: int = 1


@dataclass
class Pod:
    ready_at: int
    # When each running handler ends.
    running: list[float] = field(default_factory=list)
    # Publish times of deliveries that wait for a slot of this process.
    ahead: deque[int] = field(default_factory=deque)
    leaving: bool = False


@dataclass
class Report:
    replicas: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    oldest: list[int] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)
    # When each message was published, and when its handler began.
    begun: list[tuple[int, int]] = field(default_factory=list)

    def drain(self, at: int, within: int) -> int:
        """From the first second of a burst to the last beginning of one of its handlers."""
        return max(begun for published, begun in self.begun if at <= published < at + within) - at

    def max_age(self, since: int = 0) -> int:
        """The longest that anything had waited, at any moment."""
        return max(self.oldest[since:])

    def flips(self, since: int = 0) -> int:
        """How often the number of replicas turned from rising to falling or back."""
        steps = [after - before for before, after in pairwise(self.replicas[since:]) if after != before]
        return sum((one > 0) != (two > 0) for one, two in pairwise(steps))

    def mean_replicas(self, since: int = 0) -> float:
        return sum(self.replicas[since:]) / len(self.replicas[since:])


class World:
    def __init__(self, hpa: Hpa, setting: Setting, start: int | None = None) -> None:
        self.setting = setting
        self.random = random.Random(setting.seed)
        self.controller = Controller(hpa)
        self.hpa = hpa
        self.pods = [Pod(ready_at=0) for _ in range(start or hpa.min)]
        self.waiting: deque[int] = deque()
        self.due = 0.0
        # (when seen, value), in the order of the samples.
        self.samples: list[tuple[int, int]] = []
        self.utilization: deque[tuple[int, PodsSample]] = deque()
        self.report = Report()

    def run(self, seconds: int, rate: Callable[[int], float]) -> Report:
        """Lets `rate(second)` messages a second arrive, for so long."""
        for now in range(seconds):
            self._arrive(now, rate(now))
            self._finish(now)
            self._deliver(now)
            self._sample(now)
            if now % SYNC == self.setting.sync_phase:
                self._sync(now)
            self._note(now)
        return self.report

    def _arrive(self, now: int, rate: float) -> None:
        if self.setting.even:
            self.due += rate
            while self.due >= 1.0:
                self.due -= 1.0
                self.waiting.append(now)
            return
        # Poisson arrivals: exponential gaps within the second.
        at = self.random.expovariate(rate) if rate > 0 else 1.0
        while at < 1.0:
            self.waiting.append(now)
            at += self.random.expovariate(rate)

    def _finish(self, now: int) -> None:
        for pod in self.pods:
            pod.running = [end for end in pod.running if end > now]
        self.pods = [pod for pod in self.pods if not pod.leaving or pod.running]

    def _deliver(self, now: int) -> None:
        setting = self.setting
        ready = [pod for pod in self.pods if not pod.leaving and pod.ready_at <= now]
        for pod in ready:
            while pod.ahead and len(pod.running) < setting.slots:
                self._begin(pod, now, pod.ahead.popleft())
        # The service spreads messages over all streams that have room, without knowing which have a free slot.
        room = [pod for pod in ready if self._held(pod) < setting.slots + setting.ahead]
        while self.waiting and room:
            index = self.random.randrange(len(room))
            pod = room[index]
            published = self.waiting.popleft()
            if len(pod.running) < setting.slots:
                self._begin(pod, now, published)
            else:
                pod.ahead.append(published)
            if self._held(pod) >= setting.slots + setting.ahead:
                room[index] = room[-1]
                room.pop()

    def _begin(self, pod: Pod, now: int, published: int) -> None:
        least, most = self.setting.spread
        pod.running.append(now + self.setting.handler * self.random.uniform(least, most))
        self.report.begun.append((published, now))

    @staticmethod
    def _held(pod: Pod) -> int:
        return len(pod.running) + len(pod.ahead)

    def _sample(self, now: int) -> None:
        if now % self.setting.sample_every == self.setting.sample_phase:
            # Leased messages count, those in back-off too: nothing is subtracted until it is acked.
            undelivered = len(self.waiting) + sum(self._held(pod) for pod in self.pods) + self.setting.stuck
            self.samples.append((now + self.random.randint(*self.setting.visible_after), undelivered))
        staying = [pod for pod in self.pods if not pod.leaving]
        ready = [pod for pod in staying if pod.ready_at <= now]
        busy = tuple(len(pod.running) / self.setting.slots for pod in ready)
        self.utilization.append((now + self.setting.pods_metric_lag, PodsSample(busy, len(staying) - len(ready))))
        while len(self.utilization) > 1 and self.utilization[1][0] <= now:
            self.utilization.popleft()

    def _seen(self, now: int) -> dict[str, float | PodsSample | None]:
        backlog = next((value for seen_at, value in reversed(self.samples) if seen_at <= now), None)
        at, utilization = self.utilization[0]
        return {metric.name: backlog if metric.kind == "External" else utilization if at <= now else None
                for metric in self.hpa.metrics}

    def _sync(self, now: int) -> None:
        staying = [pod for pod in self.pods if not pod.leaving]
        ready = sum(pod.ready_at <= now for pod in staying)
        wanted = self.controller.sync(now, len(staying), ready, self._seen(now))
        for _ in range(wanted - len(staying)):
            self.pods.append(Pod(ready_at=now + self.setting.pod_start))
        # Those that are not ready go first, then the youngest.
        for pod in sorted(staying, key=lambda pod: pod.ready_at, reverse=True)[: max(0, len(staying) - wanted)]:
            pod.leaving = True
            # What has not begun is handed back at once.
            self.waiting.extendleft(reversed(pod.ahead))
            pod.ahead.clear()
            if not pod.running:
                self.pods.remove(pod)

    def _note(self, now: int) -> None:
        report = self.report
        ahead = [pod.ahead[0] for pod in self.pods if pod.ahead]
        waiting = len(self.waiting) + sum(len(pod.ahead) for pod in self.pods)
        report.replicas.append(sum(not pod.leaving for pod in self.pods))
        report.waiting.append(waiting)
        report.busy.append(sum(len(pod.running) for pod in self.pods))
        report.oldest.append(now - min([*ahead, *list(self.waiting)[:1]]) if waiting else 0)


def burst(messages: int, *, at: int, within: int = 30, base: float = 0.2) -> Callable[[int], float]:
    """So many messages, evenly within so many seconds, on top of a trickle."""
    return lambda second: base + (messages / within if at <= second < at + within else 0.0)


def steady(rate: float) -> Callable[[int], float]:
    return lambda _second: rate
