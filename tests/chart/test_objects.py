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
                    "annotations": {
                        "summary": "No pull for {{ $value }} s on {{ $labels.pod }}",
                        "runbook_url": "https://github.com/example/bellhop/blob/main/docs/runbooks/BellhopNotPulling.md",
                    },
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
    values = minimal(metrics={"prometheusRule": {"enabled": True, "runbookBaseUrl": "https://wiki.example/bellhop/", **over}})
    groups = helm.render(values, chart=chart).one("PrometheusRule")["spec"]["groups"]
    return {rule.get("alert", rule.get("record")): rule for group in groups for rule in group["rules"]}


def test_alerts_are_about_this_release(chart_with_files):
    found = alerts(chart_with_files)

    written = RULES["groups"][0]["rules"][0]
    assert found["BellhopNotPulling"] == {
        **written,
        "annotations": {**written["annotations"], "runbook_url": "https://wiki.example/bellhop/BellhopNotPulling.md"},
        "expr": 'time() - max(bellhop_pubsub_last_message_timestamp_seconds{job="bellhop",namespace="apps"}) > 300',
    }
    assert found["BellhopHPAMaxed"]["expr"] == 'kube_hpa{horizontalpodautoscaler="chat-bellhop"} == on() max(x)'
    assert found["bellhop:slots"]["expr"] == 'sum(bellhop_handler_slots{deployment="chat-bellhop"})'


def test_every_alert_leads_to_a_page_that_exists():
    for name, rule in alerts(helm.CHART).items():
        assert rule["annotations"]["runbook_url"] == f"https://wiki.example/bellhop/{name}.md"
        assert (helm.ROOT / "docs" / "runbooks" / f"{name}.md").is_file()


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
    values = minimal(metrics={"prometheusRule": {"enabled": True, "runbookBaseUrl": "https://x"}, "dashboard": {"enabled": True}})

    rendered = helm.render(values, chart=chart_with_files)

    assert rendered.all("PrometheusRule") == []
    assert "metrics.prometheusRule has no rules to render" in rendered.notes


def egress(**over) -> list[dict]:
    return helm.render(merge(scenario("prometheus"), over)).one("NetworkPolicy")["spec"]["egress"]


def ports(rules: list[dict]) -> list[list[int]]:
    return [[port["port"] for port in rule["ports"]] for rule in rules]


def test_what_the_policy_lets_out():
    assert ports(egress()) == [[53, 53], [443], [5432], [80], [988], [8000]]


def test_the_policy_names_the_handlers_pods():
    peers = scenario("prometheus")["networkPolicy"]["handlerTo"]

    assert egress()[-1] == {"ports": [{"protocol": "TCP", "port": 8000}], "to": peers}


@pytest.mark.parametrize(
    ("handler", "port"),
    [
        ({"url": "http://handler/events"}, 80),
        ({"url": "http://handler:81"}, 81),
        ({"url": "https://handler:8443/events?x=:1"}, 8443),
        ({"url": "https://handler/events"}, None),
        ({"url": "http://[fd00::1]:8080/events"}, 8080),
        ({"url": "https://handler/events", "proxy": "http://proxy:3128"}, 3128),
        ({"kind": "echo", "url": ""}, None),
    ],
)
def test_without_its_port_the_policy_takes_that_of_the_url(handler, port):
    rules = egress(config={"handler": {"auth": "none", "unauthenticated": True, **handler}}, handlerAuth={"bearerToken": {"existingSecret": ""}}, networkPolicy={"handlerPort": "", "handlerTo": []})

    assert ports(rules)[5:] == ([[port]] if port else [])


@pytest.mark.parametrize(("endpoint", "port"), [("https://pubsub.example", None), ("emulator:8085", 8085), ("http://emulator", 80), ("https://private:8443/", 8443)])
def test_the_policy_lets_another_pubsub_be_reached(endpoint, port):
    assert ports(egress(config={"pubsub": {"endpoint": endpoint}}))[5:] == ([[port]] if port else []) + [[8000]]


@pytest.mark.parametrize(
    ("url", "over", "said"),
    [
        ("http://handler.apps.svc:9000/events", {}, "The network policy opens port 9000"),
        ("http://handler.apps.svc.cluster.local/events", {}, "The network policy opens port 80"),
        ("https://handler", {}, "The network policy opens port 443"),
        ("http://handler.apps.svc:9000/events", {"networkPolicy": {"handlerPort": 9000}}, None),
        ("https://handler.example/events", {}, None),
        ("http://10.0.0.7:9000/", {}, None),
    ],
)
def test_notes_say_when_the_port_is_a_guess(url, over, said):
    base = {"config": {"handler": {"url": url}}, "networkPolicy": {"handlerPort": "", "handlerTo": []}}
    notes = helm.render(merge(merge(scenario("prometheus"), base), over)).notes

    assert (said or "The network policy opens") in notes if said else "The network policy opens" not in notes


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
