"""What a rendered autoscaler does under load. HPA names its file; SLOTS the handlers of a pod.

Times are judged in the worst of twelve moments within the minute of sampling, with samples that are seen 60 to 120 s
late, random arrivals, handlers that vary by a tenth, and processes that take 16 deliveries more than they have slots.
"""

import math
import os
import unittest
from dataclasses import replace
from pathlib import Path

import manifest
from loads import PHASES, SEEDS, drains, middle, steadies, vary
from manifest import Policy, Rules
from world import Setting, World, steady

HPA = os.environ.get("HPA") or str(Path(__file__).parent / "fixtures" / "hpa.yaml")
SLOTS = int(os.environ.get("SLOTS", "8"))


def load():
    return manifest.read(HPA)


def target(hpa, value):
    return replace(hpa, metrics=(replace(hpa.backlog, target=float(value)),))


class Rendered(unittest.TestCase):
    """The manifest as it is: what the documentation promises of the defaults."""

    def test_the_fixture_is_what_the_chart_renders(self):
        fixture = manifest.read(str(Path(__file__).parent / "fixtures" / "hpa.yaml"))

        self.assertEqual(load(), replace(fixture, name=load().name))

    def test_it_scales_on_messages_per_pod_and_below_the_slots(self):
        backlog = load().backlog

        self.assertEqual(backlog.name, "pubsub.googleapis.com|subscription|num_undelivered_messages")
        self.assertEqual(backlog.target_kind, "AverageValue")
        self.assertEqual(backlog.target, math.floor(0.8 * SLOTS))

    def test_a_burst_of_500_in_30_s_drains_within_330_s(self):
        self.assertLessEqual(drains(load(), PHASES, 500)[-1], 330)

    def test_the_same_burst_drains_within_330_s_when_every_sample_is_two_minutes_late(self):
        self.assertLessEqual(drains(load(), vary(PHASES, visible_after=(120, 120)), 500)[-1], 330)

    def test_a_small_burst_waits_for_no_more_than_the_first_new_pods(self):
        self.assertLessEqual(drains(load(), PHASES, 100)[-1], 240)

    def test_a_large_burst_ends_with_what_all_pods_can_do(self):
        hpa = load()
        work = 2000 * 30 / (hpa.max * SLOTS)

        self.assertLessEqual(drains(hpa, PHASES[::3], 2000)[-1], 150 + work + 60)

    def test_a_steady_load_ends_with_at_most_3_direction_changes_in_two_and_a_half_hours(self):
        for rate in (0.5, 1.0, 1.5):
            with self.subTest(rate=rate):
                runs = steadies(load(), vary(SEEDS, even=True), rate)

                self.assertLessEqual(max(flips for flips, _, _ in runs), 3)

    def test_chance_in_the_arrivals_adds_no_more_than_one(self):
        for rate in (0.5, 1.0, 1.5):
            with self.subTest(rate=rate):
                flips = [flips for flips, _, _ in steadies(load(), SEEDS, rate)]

                self.assertLessEqual(middle(flips), 3)
                self.assertLessEqual(max(flips), 4)

    def test_nothing_that_arrives_steadily_waits_for_two_handlers(self):
        for rate in (0.5, 1.5):
            with self.subTest(rate=rate):
                self.assertLess(max(age for _, _, age in steadies(load(), SEEDS, rate)), 60)

    def test_the_night_ends_on_the_floor(self):
        report = World(load(), Setting()).run(4 * 3600, lambda second: 1.5 if second < 3600 else 0.01)

        self.assertGreater(max(report.replicas), load().min)
        self.assertEqual(report.replicas[-1], load().min)


class LoadTable(unittest.TestCase):
    """The manifest with other limits and handlers: how long a burst takes is 150 s and the work that all pods share."""

    ROWS = (
        # handler, slots, max, burst
        (2, 16, 10, 500), (2, 16, 10, 2000), (10, 16, 10, 500), (10, 16, 10, 2000), (10, 16, 20, 2000),
        (30, 8, 10, 500), (30, 8, 20, 500), (30, 8, 20, 2000), (30, 8, 40, 2000),
        (120, 8, 20, 500), (120, 8, 40, 500), (300, 8, 40, 500),
    )

    def test_the_rule_of_thumb_holds(self):
        for handler, slots, most, messages in self.ROWS:
            with self.subTest(handler=handler, slots=slots, max=most, burst=messages):
                hpa = replace(target(load(), math.floor(0.8 * slots)), max=most)
                settings = vary(PHASES[::4], handler=float(handler), slots=slots, ahead=max(16, slots))
                # One handler more: what a process took beyond its slots is begun only when one of them ends.
                self.assertLessEqual(drains(hpa, settings, messages)[-1],
                                     150 + messages * handler / (most * slots) + max(45, 1.5 * handler))

    def test_more_pods_at_once_and_a_higher_floor_shorten_a_burst(self):
        hpa = load()
        by_max = [middle(drains(replace(hpa, max=most), PHASES[::3], 2000)) for most in (5, 10, 20, 40)]
        by_min = [middle(drains(replace(hpa, min=least), PHASES[::3], 500)) for least in (2, 5, 8)]

        self.assertEqual(by_max, sorted(by_max, reverse=True))
        self.assertEqual(by_min, sorted(by_min, reverse=True))

    def test_a_target_above_the_slots_lets_messages_wait_and_the_replicas_hunt(self):
        below, above = (
            steadies(replace(target(load(), value), max=40, down=replace(load().down, window=300)), vary(SEEDS[:3], ahead=0), 3.0)
            for value in (6, 48)
        )

        self.assertLess(max(age for _, _, age in below), 15)
        self.assertGreater(min(age for _, _, age in above), 90)
        self.assertGreater(middle(flips for flips, _, _ in above), middle(flips for flips, _, _ in below))

    def test_a_short_window_hunts(self):
        short = replace(load(), down=Rules(120, "Max", (Policy("Percent", 100, 15),)))

        self.assertGreater(middle(flips for flips, _, _ in steadies(short, SEEDS[:3], 1.0)), 8)

    def test_a_value_target_runs_away_where_an_average_does_not(self):
        hpa = replace(load(), max=60, up=manifest.UP, down=manifest.DOWN)
        value = replace(hpa, metrics=(replace(hpa.backlog, target_kind="Value", target=90.0),))
        average, by_value = (
            World(one, Setting(visible_after=(120, 120))).run(3600, steady(3.0)).mean_replicas(1800) for one in (hpa, value)
        )

        self.assertLess(average, 22)
        self.assertGreater(by_value, 40)

    def test_messages_stuck_in_back_off_hold_pods_up_until_they_are_gone(self):
        report = World(load(), Setting(stuck=60)).run(3 * 3600, steady(0.01))

        self.assertEqual(report.replicas[-1], 60 / load().backlog.target)

    def test_slot_utilization_beside_the_backlog_reacts_before_it(self):
        hpa = load()
        both = replace(hpa, metrics=(*hpa.metrics, manifest.Metric("Pods", "bellhop_slot_utilization", "AverageValue", 0.8)))

        self.assertLess(middle(drains(both, PHASES[::3], 100)), middle(drains(hpa, PHASES[::3], 100)))


if __name__ == "__main__":
    unittest.main()
