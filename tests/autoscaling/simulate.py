#!/usr/bin/env python3
"""What an autoscaler would do, without a cluster.

    simulate.py --burst 500 --handler 30 --slots 8           one burst, in twelve moments of the sampling minute
    simulate.py --steady 1.5 --hpa rendered.yaml             a steady load for 2.5 h, with nine seeds
    simulate.py --burst 2000 --max 40 --target 6 --min 3     with other limits than the manifest's
    simulate.py --tables                                     the tables of docs/AUTOSCALING.md
    simulate.py --check FILE | --write FILE                  are the tables in it these? | put them there

Python 3.10 or newer and PyYAML.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import manifest
import tables
from loads import PHASES, SEEDS, drains, middle, steadies, vary


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--burst", type=int, metavar="MESSAGES", help="so many within 30 s, on top of 0.2 a second")
    what.add_argument("--steady", type=float, metavar="RATE", help="messages a second")
    what.add_argument("--tables", action="store_true")
    what.add_argument("--check", type=Path, metavar="FILE")
    what.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--hpa", default=str(Path(__file__).parent / "fixtures" / "hpa.yaml"), help="rendered manifest")
    parser.add_argument("--handler", type=float, default=30.0, metavar="SECONDS", help="mean time of a handler")
    parser.add_argument("--slots", type=int, default=8, help="worker.concurrency")
    parser.add_argument("--ahead", type=int, metavar="N", help="deliveries taken beyond the slots; default: max(16, slots)")
    parser.add_argument("--visible", type=int, nargs=2, default=(60, 120), metavar="SECONDS", help="when a sample is seen")
    parser.add_argument("--pod-start", type=int, default=25, metavar="SECONDS")
    parser.add_argument("--stuck", type=int, default=0, metavar="N", help="messages in back-off all the time")
    for limit in ("min", "max", "target"):
        parser.add_argument(f"--{limit}", type=float if limit == "target" else int, help="instead of the manifest's")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    hpa = manifest.read(given.hpa)
    if given.tables or given.check or given.write:
        return tables.deal(hpa, given.check, given.write)
    hpa = replace(hpa, min=given.min or hpa.min, max=given.max or hpa.max)
    if given.target:
        hpa = replace(hpa, metrics=tuple(
            replace(metric, target=given.target) if metric.kind == "External" else metric for metric in hpa.metrics))
    changes = {
        "handler": given.handler, "slots": given.slots, "visible_after": tuple(given.visible), "stuck": given.stuck,
        "ahead": max(16, given.slots) if given.ahead is None else given.ahead, "pod_start": given.pod_start,
    }
    out = sys.stdout.write
    if given.burst:
        seconds = drains(hpa, vary(PHASES, **changes), given.burst)
        out(f"begun after {seconds[0]} to {seconds[-1]} s, {middle(seconds)} s in the middle\n")
    else:
        runs = steadies(hpa, vary(SEEDS, **changes), given.steady)
        mean = sum(mean for _, mean, _ in runs) / len(runs)
        out(f"{runs[0][0]} to {runs[-1][0]} direction changes in 2.5 h, {mean:.1f} pods on average, "
            f"longest wait {max(age for _, _, age in runs)} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
