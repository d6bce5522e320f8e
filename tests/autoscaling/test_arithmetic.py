"""The controller's arithmetic against numbers worked out by hand, and the world against what can not be otherwise."""

import unittest
from dataclasses import replace
from pathlib import Path

import yaml

import manifest
from controller import Controller, PodsSample
from manifest import Metric, Policy, Rules
from world import Setting, World, burst, steady

FIXTURE = str(Path(__file__).parent / "fixtures" / "hpa.yaml")
BACKLOG = "pubsub.googleapis.com|subscription|num_undelivered_messages"


class Manifest(unittest.TestCase):
    def test_quantities_are_read_as_kubernetes_writes_them(self):
        known = {"6": 6, 6: 6, "800m": 0.8, "26400m": 26.4, "1k": 1000, "1Ki": 1024, "0.5": 0.5}
        for text, value in known.items():
            self.assertAlmostEqual(manifest.quantity(text), value)
        for text in ("six", "", "-1", "6 pods"):
            self.assertRaises(ValueError, manifest.quantity, text)

    def test_what_is_left_out_is_what_the_api_server_fills_in(self):
        document = yaml.safe_load(Path(FIXTURE).read_text(encoding="utf-8"))
        del document["spec"]["behavior"], document["spec"]["minReplicas"]

        hpa = manifest.hpa(document)

        self.assertEqual((hpa.min, hpa.up, hpa.down), (1, manifest.UP, manifest.DOWN))

    def test_an_old_version_and_an_unknown_metric_are_refused(self):
        document = yaml.safe_load(Path(FIXTURE).read_text(encoding="utf-8"))
        resource = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}

        self.assertRaises(ValueError, manifest.hpa, document | {"apiVersion": "autoscaling/v2beta2"})
        self.assertRaises(ValueError, manifest.hpa, document | {"spec": document["spec"] | {"metrics": [resource]}})


class Arithmetic(unittest.TestCase):
    def setUp(self):
        free = Rules(0, "Max", (Policy("Percent", 900, 15),))
        all_at_once = replace(free, policies=(Policy("Percent", 100, 15),))
        self.hpa = replace(manifest.read(FIXTURE), min=1, max=50, up=free, down=all_at_once)

    def ask(self, value, replicas, hpa=None, ready=None):
        return Controller(hpa or self.hpa).sync(0, replicas, replicas if ready is None else ready, {BACKLOG: value})

    def test_an_average_value_asks_for_the_sum_over_the_target_whatever_runs(self):
        self.assertEqual([self.ask(100, replicas) for replicas in (2, 5, 40)], [17, 17, 17])

    def test_within_a_tenth_nothing_changes(self):
        self.assertEqual([self.ask(value, 10) for value in (55, 65)], [10, 10])
        self.assertEqual([self.ask(value, 10) for value in (53, 67)], [9, 12])

    def test_a_value_is_multiplied_with_the_pods_that_are_ready(self):
        hpa = replace(self.hpa, metrics=(Metric("External", BACKLOG, "Value", 6.0),))

        self.assertEqual(self.ask(12, 10, hpa), 20)
        self.assertEqual(self.ask(12, 20, hpa), 40)

    def test_floor_and_ceiling_hold(self):
        self.assertEqual(self.ask(0, 5, replace(self.hpa, min=2)), 2)
        self.assertEqual(self.ask(9999, 5, replace(self.hpa, max=14)), 14)
        self.assertEqual(self.ask(1, 20, replace(self.hpa, max=14)), 14)

    def test_without_a_metric_nothing_changes(self):
        self.assertEqual(self.ask(None, 7), 7)

    def test_the_largest_wish_wins_and_one_unreadable_metric_forbids_going_down(self):
        both = replace(self.hpa, metrics=(*self.hpa.metrics, Metric("Pods", "utilization", "AverageValue", 0.8)))
        sync = lambda backlog, busy: Controller(both).sync(0, 4, 4, {BACKLOG: backlog, "utilization": busy})  # noqa: E731

        self.assertEqual(sync(60, PodsSample((0.8,) * 4, 0)), 10)
        self.assertEqual(sync(6, PodsSample((1.0,) * 4, 0)), 5)
        self.assertEqual(sync(6, None), 4)
        self.assertEqual(sync(60, None), 10)

    def test_pods_without_a_value_count_against_the_change(self):
        pods = replace(self.hpa, metrics=(Metric("Pods", "utilization", "AverageValue", 0.8),))
        sync = lambda busy, missing: Controller(pods).sync(0, 4, 4, {"utilization": PodsSample(busy, missing)})  # noqa: E731

        self.assertEqual(sync((1.0,) * 4, 0), 5)
        self.assertEqual(sync((1.0,) * 3, 1), 4)
        self.assertEqual(sync((0.1,) * 2, 2), 3)

    def test_a_policy_counts_from_where_its_period_began(self):
        doubling = replace(self.hpa, up=Rules(0, "Max", (Policy("Percent", 100, 30), Policy("Pods", 4, 30))))
        controller, replicas, seen = Controller(doubling), 2, []
        for now in range(0, 120, 15):
            replicas = controller.sync(now, replicas, replicas, {BACKLOG: 600})
            seen.append(replicas)

        self.assertEqual(seen, [6, 6, 12, 12, 24, 24, 48, 48])

    def test_select_policy_min_takes_the_smaller_step_and_disabled_none(self):
        rules = Rules(0, "Min", (Policy("Percent", 100, 30), Policy("Pods", 1, 30)))

        self.assertEqual(self.ask(600, 4, replace(self.hpa, up=rules)), 5)
        self.assertEqual(self.ask(600, 4, replace(self.hpa, up=replace(rules, select="Disabled"))), 4)
        self.assertEqual(self.ask(0, 4, replace(self.hpa, down=replace(rules, select="Disabled"))), 4)

    def test_going_down_waits_for_the_highest_wish_of_the_window_to_be_over(self):
        patient = replace(self.hpa, down=Rules(300, "Max", (Policy("Percent", 100, 15),)))
        controller, replicas, seen = Controller(patient), 10, {}
        for now in range(0, 600, 15):
            replicas = controller.sync(now, replicas, replicas, {BACKLOG: 60 if now == 0 else 12})
            seen[now] = replicas

        self.assertEqual((seen[285], seen[300], seen[315]), (10, 2, 2))

    def test_going_up_with_a_window_waits_for_the_lowest_wish_to_be_over(self):
        wary = replace(self.hpa, up=replace(self.hpa.up, window=60))
        controller, replicas, seen = Controller(wary), 2, {}
        for now in range(0, 150, 15):
            replicas = controller.sync(now, replicas, replicas, {BACKLOG: 12 if now == 0 else 60})
            seen[now] = replicas

        self.assertEqual((seen[45], seen[60]), (2, 10))


class Model(unittest.TestCase):
    def setUp(self):
        self.hpa = manifest.read(FIXTURE)

    def test_the_same_seed_is_the_same_run(self):
        runs = [World(self.hpa, Setting(seed=seed)).run(900, burst(100, at=60)) for seed in (3, 3, 4)]

        self.assertEqual(runs[0].begun, runs[1].begun)
        self.assertNotEqual(runs[0].begun, runs[2].begun)

    def test_no_message_is_lost_or_handled_twice_through_ups_and_downs(self):
        down = Rules(0, "Max", (Policy("Percent", 100, 15),))
        world = World(replace(self.hpa, down=down), Setting(even=True))
        report = world.run(3000, lambda second: 2.0 if second % 600 < 60 else 0.0)

        self.assertGreater(report.flips(), 4)
        self.assertEqual(len(report.begun), 5 * 120)
        self.assertEqual(report.waiting[-1], 0)

    def test_what_a_leaving_process_has_not_begun_goes_to_the_others(self):
        world = World(replace(self.hpa, max=2), Setting(even=True, slots=4), start=4)
        report = world.run(600, lambda second: 64.0 if second == 0 else 0.0)

        self.assertEqual((report.replicas[0], report.replicas[-1]), (4, 2))
        self.assertEqual(len(report.begun), 64)

    def test_a_process_never_runs_more_than_its_slots(self):
        world = World(replace(self.hpa, max=2), Setting(slots=8))
        report = world.run(600, steady(5.0))

        self.assertEqual(max(report.busy), 16)

    def test_a_sample_is_seen_late_and_a_pod_works_later_still(self):
        world = World(self.hpa, Setting(visible_after=(90, 90), sample_phase=10, sync_phase=0, even=True))
        report = world.run(400, lambda second: 500 / 30 if second < 30 else 0.0)

        # Sampled at 10 s with 183 messages, seen at 100 s, acted upon at 105 s, the pods ready at 130 s.
        self.assertEqual((report.replicas[104], report.replicas[105]), (2, 10))
        self.assertEqual((max(report.busy[:130]), report.busy[130]), (16, 80))


if __name__ == "__main__":
    unittest.main()
