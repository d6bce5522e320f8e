"""Objects whose content matters beyond their shape."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml

import helm
import pods
from scenarios import merge, minimal, scenario

RULES = {
    "groups": [
        {
            "name": "bellhop",
            "rules": [
                {
                    "alert": "BellhopNotPulling",
                    "expr": 'time() - max(bellhop_pubsub_last_message_timestamp_seconds{job="bellhop",namespace="bellhop"}) > 300',
                    "for": "2m",
                    "labels": {"severity": "critical"},
                    "annotations": {"summary": "No pull for {{ $value }} s on {{ $labels.pod }}"},
                },
                {"alert": "BellhopHPAMaxed", "expr": 'kube_hpa{horizontalpodautoscaler="bellhop"} == on() max(x)', "for": "20m"},
                {"record": "bellhop:slots", "expr": 'sum(bellhop_handler_slots{deployment="bellhop"})'},
            ],
        }
    ]
}


@pytest.fixture
def chart_with_files(tmp_path):
    """A copy of the chart whose alerts and dashboard are known."""
    copy = tmp_path / "bellhop"
    shutil.copytree(helm.CHART, copy)
    for old in [*(copy / "files").glob("rules*.yaml"), *(copy / "files").glob("dashboard*.json")]:
        old.unlink()
    (copy / "files" / "rules.yaml").write_text(yaml.safe_dump(RULES))
    (copy / "files" / "dashboard.json").write_text(json.dumps({"title": "bellhop", "legend": "{{ pod }}"}, indent=2))
    return copy


def alerts(chart, **over) -> dict:
    values = minimal(metrics={"prometheusRule": {"enabled": True, **over}})
    groups = helm.render(values, chart=chart).one("PrometheusRule")["spec"]["groups"]
    return {rule.get("alert", rule.get("record")): rule for group in groups for rule in group["rules"]}


def test_alerts_are_about_this_release(chart_with_files):
    found = alerts(chart_with_files)

    assert found["BellhopNotPulling"] == {
        **RULES["groups"][0]["rules"][0],
        "expr": 'time() - max(bellhop_pubsub_last_message_timestamp_seconds{job="bellhop",namespace="apps"}) > 300',
    }
    assert found["BellhopHPAMaxed"]["expr"] == 'kube_hpa{horizontalpodautoscaler="chat-bellhop"} == on() max(x)'
    assert found["bellhop:slots"]["expr"] == 'sum(bellhop_handler_slots{deployment="chat-bellhop"})'


def test_an_alert_can_be_switched_off(chart_with_files):
    assert "BellhopNotPulling" not in alerts(chart_with_files, alerts={"BellhopNotPulling": {"enabled": False}})


def test_an_alert_can_be_changed(chart_with_files):
    change = {"threshold": 600, "for": "5m", "severity": "warning", "labels": {"page": "no"}}
    rule = alerts(chart_with_files, alerts={"BellhopNotPulling": change}, alertLabels={"team": "chat"})["BellhopNotPulling"]

    assert rule["expr"].endswith('namespace="apps"}) > 600')
    assert rule["for"] == "5m"
    assert rule["labels"] == {"severity": "warning", "page": "no", "team": "chat"}


def test_an_alert_that_is_not_there_can_not_be_changed(chart_with_files):
    with pytest.raises(helm.Refused, match="metrics.prometheusRule.alerts.BellhopOdd: there is no such alert"):
        alerts(chart_with_files, alerts={"BellhopOdd": {"enabled": False}})


def test_a_threshold_that_is_not_there_can_not_be_changed(chart_with_files):
    with pytest.raises(helm.Refused, match="alerts.BellhopHPAMaxed: its expression does not end with a number"):
        alerts(chart_with_files, alerts={"BellhopHPAMaxed": {"threshold": 3}})


def test_the_dashboard_comes_as_it_is(chart_with_files):
    rendered = helm.render(minimal(metrics={"dashboard": {"enabled": True}}), chart=chart_with_files)
    found = next(document for document in rendered.all("ConfigMap") if "bellhop.yaml" not in document["data"])

    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["data"] == {"chat-bellhop-dashboard.json": (chart_with_files / "files" / "dashboard.json").read_text()}


def test_without_files_there_is_neither(chart_with_files):
    for path in (chart_with_files / "files").glob("*.*"):
        path.unlink()
    values = minimal(metrics={"prometheusRule": {"enabled": True}, "dashboard": {"enabled": True}})

    rendered = helm.render(values, chart=chart_with_files)

    assert rendered.all("PrometheusRule") == []
    assert "metrics.prometheusRule has no rules to render" in rendered.notes


def test_what_the_policy_lets_out():
    egress = helm.render(scenario("prometheus")).one("NetworkPolicy")["spec"]["egress"]

    assert [[port["port"] for port in rule["ports"]] for rule in egress] == [[53, 53], [443], [5432], [80], [988], [9000]]


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://handler/events", 80),
        ("http://handler:81", 81),
        ("https://handler:8443/events?x=:1", 8443),
        ("https://handler/events", None),
        ("http://[fd00::1]:8080/events", 8080),
    ],
)
def test_the_policy_lets_handlers_be_reached(url, port):
    values = merge(scenario("prometheus"), {"config": {"handler": {"url": url}}})
    egress = helm.render(values).one("NetworkPolicy")["spec"]["egress"]

    assert [rule["ports"][0]["port"] for rule in egress][5:] == ([port] if port else [])


def test_the_policy_lets_the_test_pod_in():
    rendered = helm.render(scenario("prometheus"))
    peers = rendered.one("NetworkPolicy")["spec"]["ingress"][0]["from"]
    labels = rendered.one("Pod")["metadata"]["labels"]

    assert any(peer["podSelector"]["matchLabels"].items() <= labels.items() for peer in peers if "podSelector" in peer)


def test_sqlite_lies_on_the_volume():
    rendered = helm.render(scenario("sqlite"))
    spec = pods.spec_of(rendered.one("Deployment"))
    claim = rendered.one("PersistentVolumeClaim")

    assert {"name": "store", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}} in spec["volumes"]
    assert {"name": "store", "mountPath": "/var/lib/bellhop"} in spec["containers"][0]["volumeMounts"]


def test_workload_identity_is_an_annotation():
    account = helm.render(scenario("hpa")).one("ServiceAccount")

    assert account["metadata"]["annotations"] == {"iam.gke.io/gcp-service-account": "bellhop@my-project.iam.gserviceaccount.com"}


def test_a_digest_wins_over_a_tag():
    values = merge(scenario("google"), {"image": {"tag": "1.0"}})
    image = pods.spec_of(helm.render(values).one("Deployment"))["containers"][0]["image"]

    assert image == "europe-docker.pkg.dev/my-project/apps/bellhop@" + scenario("google")["image"]["digest"]


@pytest.mark.parametrize(("preset", "key"), [("soft", "preferredDuringSchedulingIgnoredDuringExecution"), ("hard", "requiredDuringSchedulingIgnoredDuringExecution")])
def test_pods_avoid_each_other(preset, key):
    affinity = pods.spec_of(helm.render(minimal(podAntiAffinityPreset=preset)).one("Deployment"))["affinity"]

    assert list(affinity["podAntiAffinity"]) == [key]


def test_pods_need_not_avoid_each_other():
    spec = pods.spec_of(helm.render(minimal(podAntiAffinityPreset="none", topologySpreadConstraints=[])).one("Deployment"))

    assert "affinity" not in spec and "topologySpreadConstraints" not in spec


def test_liveness_asks_nothing_that_a_restart_does_not_mend():
    container = pods.spec_of(helm.render(minimal()).one("Deployment"))["containers"][0]

    assert {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")} == {
        "startup": "/healthz/started",
        "liveness": "/healthz/live",
        "readiness": "/healthz/ready",
    }


def test_whole_numbers_stay_whole():
    text = next(found for found in helm.render(scenario("prometheus")).all("ConfigMap") if "bellhop.yaml" in found["data"])["data"]["bellhop.yaml"]

    assert "max_per_minute: 100000\n" in text
