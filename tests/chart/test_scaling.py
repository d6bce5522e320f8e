"""Targets, floors, and who owns which field."""

from __future__ import annotations

import math

import pytest
import yaml

import helm
import pods
from scenarios import hpa, merge, minimal, names, scenario, single

OFFICE = {"name": "office", "schedule": "45 7 * * 1-5", "end": "0 19 * * 1-5", "timezone": "Europe/Berlin", "minReplicas": 5}


def autoscaler(**over) -> dict:
    return helm.render(hpa(**over)).one("HorizontalPodAutoscaler")["spec"]


def store(values: dict) -> dict:
    maps = helm.render(values).all("ConfigMap")
    text = next(found["data"]["bellhop.yaml"] for found in maps if "bellhop.yaml" in found["data"])
    return yaml.safe_load(text)["store"]


@pytest.mark.parametrize("name", names())
def test_replicas_are_written_only_where_nothing_scales(name):
    values = scenario(name)
    deployment = helm.render(values).one("Deployment")

    scaled = values.get("autoscaling", {}).get("mode", "none") != "none"

    assert ("replicas" in deployment["spec"]) is not scaled


def test_the_backlog_is_averaged_over_pods():
    metric = autoscaler()["metrics"][0]["external"]

    assert metric == {
        "metric": {
            "name": "pubsub.googleapis.com|subscription|num_undelivered_messages",
            "selector": {"matchLabels": {"resource.labels.project_id": "my-project", "resource.labels.subscription_id": "chat-events"}},
        },
        "target": {"type": "AverageValue", "averageValue": "6"},
    }


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8, 10, 16, 33, 100, 1000])
def test_the_target_is_four_fifths_of_the_concurrency_and_at_least_one(slots):
    spec = autoscaler(config={"worker": {"concurrency": slots}})

    assert spec["metrics"][0]["external"]["target"]["averageValue"] == str(max(1, math.floor(slots * 4 / 5)))


def test_a_target_that_is_given_is_taken():
    spec = autoscaler(autoscaling={"target": 3})

    assert spec["metrics"][0]["external"]["target"]["averageValue"] == "3"


def test_the_behaviour_is_the_simulated_one():
    behavior = autoscaler()["behavior"]

    assert behavior == {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 400, "periodSeconds": 15}, {"type": "Pods", "value": 8, "periodSeconds": 15}],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": 1800,
            "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}, {"type": "Pods", "value": 1, "periodSeconds": 60}],
        },
    }


def test_more_metrics_stand_beside_the_backlog():
    extra = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}

    assert autoscaler(autoscaling={"extraMetrics": [extra]})["metrics"][1] == extra


def test_keda_and_an_hpa_are_never_rendered_together():
    rendered = helm.render(scenario("keda"))

    assert rendered.all("HorizontalPodAutoscaler") == []
    assert rendered.one("ScaledObject")["spec"]["minReplicaCount"] == 0


def test_keda_asks_cloud_monitoring():
    trigger, cron = helm.render(scenario("keda")).one("ScaledObject")["spec"]["triggers"]

    assert trigger["metadata"] == {
        "serverAddress": "https://monitoring.googleapis.com/v1/projects/my-project/location/global/prometheus",
        "query": 'max(pubsub_googleapis_com:subscription_num_undelivered_messages{monitored_resource="pubsub_subscription",project_id="my-project",subscription_id="chat-events"}) or vector(0)',
        "threshold": "12",
        "activationThreshold": "0",
    }
    assert cron["metadata"] == {"timezone": "Europe/Berlin", "start": "45 7 * * 1-5", "end": "0 19 * * 1-5", "desiredReplicas": "2"}


def test_kedas_own_authentication_can_be_brought():
    values = merge(scenario("keda"), {"autoscaling": {"keda": {"authenticationRef": {"kind": "ClusterTriggerAuthentication", "name": "gcp"}}}})
    rendered = helm.render(values)

    assert rendered.all("TriggerAuthentication") == []
    assert rendered.one("ScaledObject")["spec"]["triggers"][0]["authenticationRef"] == {"kind": "ClusterTriggerAuthentication", "name": "gcp"}


def test_with_floors_the_chart_leaves_min_replicas_alone():
    assert "minReplicas" in autoscaler()
    assert "minReplicas" not in autoscaler(autoscaling={"floors": [OFFICE]})


def test_each_floor_goes_up_and_down_again():
    rendered = helm.render(hpa(autoscaling={"floors": [OFFICE]}))
    jobs = {job["metadata"]["name"]: job["spec"] for job in rendered.all("CronJob")}
    files = next(found["data"] for found in rendered.all("ConfigMap") if "down.yaml" in found["data"])

    assert {name: (job["schedule"], job["timeZone"], job["concurrencyPolicy"]) for name, job in jobs.items()} == {
        "chat-bellhop-floor-office-up": ("45 7 * * 1-5", "Europe/Berlin", "Forbid"),
        "chat-bellhop-floor-office-down": ("0 19 * * 1-5", "Europe/Berlin", "Forbid"),
    }
    for way, least in (("up-office", 5), ("down", 2)):
        assert yaml.safe_load(files[f"{way}.yaml"]) == {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "chat-bellhop", "namespace": "apps"},
            "spec": {"minReplicas": least},
        }


def test_floors_are_applied_under_their_own_name():
    for job in helm.render(hpa(autoscaling={"floors": [OFFICE]})).all("CronJob"):
        spec = pods.spec_of(job)
        arguments = spec["containers"][0]["args"]
        way = "up-office" if job["metadata"]["name"].endswith("-up") else "down"

        assert {"apply", "--server-side", "--field-manager=bellhop-floor", f"--filename=/floors/{way}.yaml"} <= set(arguments)
        assert spec["serviceAccountName"] == "chat-bellhop-floor"


def test_floors_may_touch_one_object_only():
    role = helm.render(hpa(autoscaling={"floors": [OFFICE]})).one("Role")

    assert role["rules"] == [
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "resourceNames": ["chat-bellhop"], "verbs": ["get", "patch"]}
    ]


@pytest.mark.parametrize(
    ("values", "replicas"),
    [
        (minimal(), 2),
        (minimal(replicaCount=4), 5),
        (minimal(replicaCount=5), 7),
        (minimal(replicaCount=4, strategy={"rollingUpdate": {"maxSurge": 3}}), 7),
        (minimal(replicaCount=4, strategy={"type": "Recreate"}), 4),
        (minimal(replicaCount=0), 1),
        (hpa(), 18),
        (hpa(autoscaling={"maxReplicas": 4}), 5),
        (single("memory"), 1),
        (single("sqlite"), 1),
    ],
)
def test_the_store_is_told_how_many_share_it(values, replicas):
    told = store(values)

    assert told["replicas"] == replicas
    assert told.get("single_process", False) is (told["backend"] != "postgres")


@pytest.mark.parametrize(("backend", "strategy"), [("memory", "Recreate"), ("sqlite", "Recreate")])
def test_single_process_stores_are_recreated(backend, strategy):
    assert helm.render(single(backend)).one("Deployment")["spec"]["strategy"] == {"type": strategy}


def test_postgres_rolls_without_a_gap():
    assert helm.render(minimal()).one("Deployment")["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0},
    }


@pytest.mark.parametrize(
    ("over", "seconds"),
    [
        ({}, 600),
        ({"config": {"handler": {"timeout": "500s"}}}, 690),
        ({"minReadySeconds": 800}, 1050),
        ({"progressDeadlineSeconds": 71}, 71),
    ],
)
def test_a_rollout_is_given_time_to_drain(over, seconds):
    assert helm.render(minimal(**over)).one("Deployment")["spec"]["progressDeadlineSeconds"] == seconds


def test_notes_say_what_is_in_effect():
    notes = helm.render(scenario("hpa-floors")).notes

    for said in (
        "postgres, for up to 18 processes",
        "2 to 14, autoscaling.mode=hpa",
        "12 outstanding messages per pod (16 handlers at once), computed",
        "70 s from SIGTERM to SIGKILL, computed",
        "field manager bellhop-floor",
        "the API's default of\n1 holds",
    ):
        assert said in notes


@pytest.mark.parametrize(
    ("name", "over", "said"),
    [
        ("memory", {}, "The memory store forgets everything"),
        ("sqlite", {"persistence": {"enabled": False}}, "ends with the pod"),
        ("minimal", {}, "Nothing scrapes /metrics"),
        ("minimal", {"migrations": {"mode": "none"}}, "Nobody migrates"),
        ("google", {"config": {"handler": {"timeout": "16s"}}}, "Spot nodes end 15 s after their notice"),
        ("google", {"workloadIdentity": {"gcpServiceAccount": "x@y"}}, "the account chat needs the annotation iam.gke.io/gcp-service-account"),
        ("existing-configmap", {}, "A change of the ConfigMap chat-bellhop does not restart pods"),
        ("hpa-prometheus", {}, "/apis/custom.metrics.k8s.io/v1beta1/namespaces/apps/pods/*/bellhop_slot_utilization'"),
        ("hpa", {}, "/pubsub.googleapis.com|subscription|num_undelivered_messages?labelSelector=resource.labels.project_id=my-project,"),
        ("keda", {}, "describe hpa keda-hpa-chat-bellhop"),
    ],
)
def test_notes_warn(name, over, said):
    assert said in helm.render(merge(scenario(name), over)).notes


def test_notes_do_not_warn_of_spot_nodes_for_short_handlers():
    assert "Spot nodes" not in helm.render(merge(scenario("google"), {"config": {"handler": {"timeout": "15s"}}})).notes


def test_notes_say_what_was_skipped():
    assert "metrics.gmpPodMonitoring was skipped" in helm.render(scenario("google"), crds=False).notes
    assert "was skipped" not in helm.render(scenario("google"), crds=True).notes
