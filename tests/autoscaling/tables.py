"""The tables of docs/AUTOSCALING.md, each between `<!-- simulated: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import manifest
from loads import PHASES, SEEDS, drains, middle, steadies, vary
from manifest import Hpa, Policy, Rules
from world import Setting, World

FEW = PHASES[::3]


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [" | ".join(str(cell) for cell in row) for row in (head, *rows)]
    lines.insert(1, "|".join("---" for _ in head))
    return "".join(f"|{line}|\n" if index == 1 else f"| {line} |\n" for index, line in enumerate(lines))


def to(seconds: list[int]) -> str:
    return f"{middle(seconds)} ({seconds[-1]})"


def with_target(hpa: Hpa, target: float) -> Hpa:
    return replace(hpa, metrics=(replace(hpa.backlog, target=float(target)),))


def targets(hpa: Hpa) -> str:
    rows = []
    for target in (4, 6, 8, 12, 24, 48):
        runs = steadies(replace(with_target(hpa, target), max=40), vary(SEEDS[:5], ahead=2), 3.0)
        rows.append((target, f"{target / 8:g}", f"{sum(mean for _, mean, _ in runs) / len(runs):.0f}",
                     f"{max(age for _, _, age in runs)} s", middle(flips for flips, _, _ in runs)))
    return table(("target", "target / slots", "pods", "longest wait", "direction changes"), rows)


def bursts(hpa: Hpa) -> str:
    rows = []
    for handler, slots, most in ((2, 16, 14), (10, 16, 14), (30, 8, 14), (30, 8, 28), (120, 8, 14), (120, 8, 40), (300, 8, 40)):
        one = replace(with_target(hpa, math.floor(0.8 * slots)), max=most)
        settings = vary(FEW, handler=float(handler), slots=slots)
        rows.append((f"{handler} s", slots, most, *(to(drains(one, settings, messages)) for messages in (100, 500, 2000))))
    return table(("handler", "slots", "max", "100 messages", "500", "2 000"), rows)


def knobs(hpa: Hpa) -> str:
    slow = Rules(0, "Max", (Policy("Percent", 100, 30), Policy("Pods", 4, 30)))
    beside = manifest.Metric("Pods", "bellhop_slot_utilization", "AverageValue", 0.8)
    rows = [("the defaults", to(drains(hpa, PHASES, 500)))]
    rows += [(f"`maxReplicas` {most}", to(drains(replace(hpa, max=most), PHASES, 500))) for most in (7, 10, 28)]
    rows += [(f"`minReplicas` {least}", to(drains(replace(hpa, min=least), PHASES, 500))) for least in (4, 8)]
    rows += [
        ("going up by 100 % or 4 pods in 30 s", to(drains(replace(hpa, up=slow), PHASES, 500))),
        ("`behavior.scaleUp` left out (Kubernetes' own)", to(drains(replace(hpa, up=manifest.UP), PHASES, 500))),
        ("slot utilization as a second metric", to(drains(replace(hpa, metrics=(*hpa.metrics, beside)), PHASES, 500))),
        ("target 12 with 8 slots", to(drains(with_target(hpa, 12), PHASES, 500))),
        ("samples seen after 15 s", to(drains(hpa, vary(PHASES, visible_after=(15, 15)), 500))),
        ("samples seen after 240 s", to(drains(hpa, vary(PHASES, visible_after=(240, 240)), 500))),
        ("pods that start in 90 s", to(drains(hpa, vary(PHASES, pod_start=90), 500))),
    ]
    return table(("changed", "seconds"), rows)


def windows(hpa: Hpa) -> str:
    rows = []
    for window in (300, 600, 900, 1800, 3600):
        one = replace(hpa, down=replace(hpa.down, window=window))
        runs = steadies(one, SEEDS, 1.0)
        day = World(one, Setting()).run(6 * 3600, lambda second: 0.05 + (2.0 if second % 420 < 30 else 0.0))
        rows.append((f"{window} s", f"{middle(flips for flips, _, _ in runs)} ({runs[-1][0]})",
                     f"{sum(mean for _, mean, _ in runs) / len(runs):.1f}", day.flips(), f"{day.mean_replicas():.1f}"))
    return table(("window", "direction changes, steady", "pods, steady", "direction changes, bursts", "pods, bursts"), rows)


def ahead(hpa: Hpa) -> str:
    rows = []
    for count in (0, 2, 4, 8, 16):
        runs = steadies(hpa, vary(SEEDS, ahead=count), 1.0)
        rows.append((count, f"{max(age for _, _, age in runs)} s", f"{middle(flips for flips, _, _ in runs)}",
                     to(drains(hpa, vary(PHASES, ahead=count), 500)),
                     to(drains(replace(hpa, max=40), vary(FEW, ahead=count, handler=300.0), 100))))
    return table(("taken beyond the slots", "longest wait, steady", "direction changes", "burst of 500",
                  "burst of 100, 300 s handlers, max 40"), rows)


TABLES: dict[str, Callable[[Hpa], str]] = {
    "targets": targets, "bursts": bursts, "knobs": knobs, "windows": windows, "ahead": ahead,
}
BLOCK = re.compile(r"(<!-- simulated: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def deal(hpa: Hpa, check: Path | None, write: Path | None) -> int:
    """Prints all tables, or those that a page holds are compared with it or written to it."""
    page = check or write
    if page is None:
        for name, make in TABLES.items():
            sys.stdout.write(f"{name}\n\n{make(hpa)}\n")
        return 0
    text = page.read_text(encoding="utf-8")
    missing = TABLES.keys() - {found[2] for found in BLOCK.finditer(text)}
    if missing:
        sys.stderr.write(f"{page} has no table {', '.join(sorted(missing))}\n")
        return 1
    new = BLOCK.sub(lambda found: f"{found[1]}{TABLES[found[2]](hpa)}{found[4]}", text)
    if write:
        page.write_text(new, encoding="utf-8")
    elif new != text:
        sys.stderr.write(f"{page} shows other figures than the simulator: run tests/autoscaling/simulate.py --write {page}\n")
        return 1
    return 0
