"""The loads that are judged, each as one number or a few.

Every figure is the worst or the middle of several runs: when within a minute the burst begins matters as much as chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from multiprocessing import Pool
from statistics import median_low

from manifest import Hpa
from world import Report, Setting, World, burst, steady

# What stands before a burst: the autoscaler has settled on its floor.
QUIET = 600
BURST = 30
HOURS = 9000  # 2.5 h
PHASES = tuple(Setting(sample_phase=phase, seed=phase + 1) for phase in range(0, 60, 5))
SEEDS = tuple(Setting(seed=seed) for seed in range(9))


def vary(settings: Iterable[Setting], **changes: object) -> list[Setting]:
    return [replace(setting, **changes) for setting in settings]


def _drain(job: tuple[Hpa, Setting, int, float]) -> int:
    hpa, setting, messages, base = job
    rounds = messages * setting.handler / (hpa.max * setting.slots)
    # The end is unknown beforehand; a run that was too short is repeated with more time.
    seconds = int(600 + 2 * rounds + 4 * setting.handler)
    while True:
        report = World(hpa, setting).run(QUIET + seconds, burst(messages, at=QUIET, within=BURST, base=base))
        if not all(report.waiting[QUIET + BURST :]):
            return report.drain(QUIET, BURST)
        seconds *= 2


def drains(hpa: Hpa, settings: Iterable[Setting], messages: int, base: float = 0.2) -> list[int]:
    """Seconds from the first message of a burst to the beginning of its last handler, sorted."""
    with Pool() as pool:
        return sorted(pool.map(_drain, [(hpa, setting, messages, base) for setting in settings]))


def _steady(job: tuple[Hpa, Setting, float]) -> tuple[int, float, int]:
    hpa, setting, rate = job
    report: Report = World(hpa, setting).run(HOURS, steady(rate))
    # The first half hour, in which the autoscaler finds its place, counts for the flips but not for the age.
    return report.flips(), report.mean_replicas(1800), report.max_age(1800)


def steadies(hpa: Hpa, settings: Iterable[Setting], rate: float) -> list[tuple[int, float, int]]:
    """(direction changes in 2.5 h, mean replicas and longest wait after the first half hour), sorted."""
    with Pool() as pool:
        return sorted(pool.map(_steady, [(hpa, setting, rate) for setting in settings]))


def middle(values: Iterable[int]) -> int:
    return median_low(list(values))
