"""What can not be changed on a running release does not change."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import helm
import pods
from scenarios import merge, minimal, names, scenario

PREVIOUS = sorted((Path(__file__).parent / "previous").glob("bellhop-*.tgz"))

GOLDEN = {"app.kubernetes.io/name": "bellhop", "app.kubernetes.io/instance": "chat"}

# Fields the API server refuses to change, by kind. A Job has them all in its spec, but for what suspends or ends it.
IMMUTABLE = {
    "Deployment": lambda spec: spec["selector"],
    "Job": lambda spec: {"template": spec["template"], "selector": spec.get("selector"), "completions": spec.get("completions")},
    "PersistentVolumeClaim": lambda spec: {key: value for key, value in spec.items() if key != "resources"},
    "PodDisruptionBudget": lambda spec: None,
    "Service": lambda spec: spec.get("clusterIP"),
}


def immutable(document: dict):
    if document["kind"] == "RoleBinding":
        return document["roleRef"]
    take = IMMUTABLE.get(document["kind"])
    return take(document["spec"]) if take else None


def by_key(rendered: helm.Rendered) -> dict:
    return {(document["kind"], document["metadata"]["name"]): document for document in rendered.objects}


def known(values: dict, schema: dict, root: dict) -> dict:
    """Of some values, those that a chart's schema has: newer ones can not have been given to it."""
    while "$ref" in schema:
        schema = root["definitions"][schema["$ref"].rsplit("/", 1)[1]]
    if "properties" not in schema:
        return values
    return {
        key: known(value, schema["properties"][key], root) if isinstance(value, dict) else value
        for key, value in values.items()
        if key in schema["properties"]
    }


def values_for(archive: Path, values: dict) -> dict:
    with tarfile.open(archive) as chart:
        schema = json.load(chart.extractfile("bellhop/values.schema.json"))
    return known(values, schema, schema)


def changed(before: helm.Rendered, after: helm.Rendered) -> list[tuple]:
    old, new = by_key(before), by_key(after)
    return [key for key in old.keys() & new.keys() if immutable(old[key]) != immutable(new[key])]


@pytest.mark.parametrize("name", sorted(set(names()) - {"everything-extra"}))
def test_the_selector_is_name_and_instance(name):
    assert helm.render(scenario(name)).one("Deployment")["spec"]["selector"] == {"matchLabels": GOLDEN}


@pytest.mark.parametrize("name", names())
def test_every_selector_matches_the_workers_and_nobody_else(name):
    rendered = helm.render(scenario(name))
    selector = rendered.one("Deployment")["spec"]["selector"]["matchLabels"]
    others = [document for document in rendered.objects if pods.spec_of(document) and document["kind"] != "Deployment"]

    worker = pods.labels_of(rendered.one("Deployment"))

    assert selector.items() <= worker.items()
    for document in others:
        assert not selector.items() <= pods.labels_of(document).items(), document["metadata"]["name"]
    for kind in ("PodDisruptionBudget", "PodMonitor", "PodMonitoring"):
        for document in rendered.all(kind):
            assert document["spec"]["selector"]["matchLabels"] == selector
    for service in rendered.all("Service"):
        assert service["spec"]["selector"] == selector


def test_labels_of_users_do_not_touch_the_selector():
    mine = {"app.kubernetes.io/name": "other", "app.kubernetes.io/instance": "other", "team": "chat"}
    deployment = helm.render(minimal(commonLabels=mine, podLabels=mine)).one("Deployment")

    assert GOLDEN.items() <= pods.labels_of(deployment).items()
    assert pods.labels_of(deployment)["team"] == "chat"


def test_there_is_a_previous_chart():
    assert PREVIOUS


@pytest.mark.parametrize("archive", PREVIOUS, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", names())
def test_nothing_immutable_changed_since_the_previous_chart(name, archive):
    before = helm.render(values_for(archive, scenario(name)), chart=archive)

    assert changed(before, helm.render(scenario(name))) == []


@pytest.mark.parametrize("archive", PREVIOUS, ids=lambda path: path.stem)
def test_only_values_the_previous_chart_can_not_know_are_left_out(archive):
    values = scenario("prometheus")

    left = values_for(archive, values)

    assert left["config"] == values["config"]
    assert "handlerPort" not in left["networkPolicy"] and "handlerPort" in values["networkPolicy"]


@pytest.mark.parametrize(
    "over",
    [
        {"image": {"tag": "9.9.9"}},
        {"replicaCount": 3},
        {"resources": {"limits": {"memory": "1Gi"}}},
        {"config": {"worker": {"concurrency": 4}, "handler": {"timeout": "5s"}}},
        {"commonLabels": {"team": "chat"}},
        {"extraEnv": [{"name": "X", "value": "y"}]},
        {"migrations": {"backoffLimit": 1, "activeDeadlineSeconds": 60}},
        {"postgres": {"existingSecret": "other"}},
        {"autoscaling": {"mode": "hpa"}},
    ],
    ids=json.dumps,
)
def test_nothing_immutable_changes_with_the_values(over):
    assert changed(helm.render(minimal()), helm.render(minimal(**over))) == []


def test_a_changed_migration_is_another_job():
    def name(**over) -> str:
        return helm.render(minimal(**over)).one("Job")["metadata"]["name"]

    assert name() != name(image={"tag": "9.9.9"})
    assert name() == name(replicaCount=3)


def test_a_changed_selector_would_be_noticed():
    before, after = helm.render(minimal()), helm.render(minimal(nameOverride="other", fullnameOverride="chat-bellhop"))

    assert ("Deployment", "chat-bellhop") in changed(before, after)


def pod_template(**over) -> dict:
    return helm.render(minimal(**over)).one("Deployment")["spec"]["template"]


def test_a_changed_configuration_restarts_the_pods():
    assert pod_template() != pod_template(config={"log": {"level": "debug"}})


def test_another_number_of_pods_does_not_restart_them():
    assert pod_template() == pod_template(replicaCount=5)


def test_a_changed_secret_restarts_the_pods_when_it_is_told():
    assert pod_template() != pod_template(postgres={"secretChecksum": "2"})


def test_the_hook_has_a_name_that_stays():
    rendered = helm.render(merge(scenario("google"), {"image": {"digest": "sha256:" + "1" * 64}}))

    job = rendered.one("Job")
    assert job["metadata"]["name"] == "chat-bellhop-migrate"
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"


@pytest.mark.parametrize("name", ["minimal", "google", "everything-extra"])
def test_migrations_need_nothing_that_the_release_makes(name):
    rendered = helm.render(scenario(name))
    made = {document["metadata"]["name"] for document in rendered.objects if document["kind"] in ("ConfigMap", "Secret", "ServiceAccount")}

    spec = pods.spec_of(rendered.one("Job"))

    sources = [volume[kind].get("name", volume[kind].get("secretName")) for volume in spec["volumes"] for kind in ("configMap", "secret") if kind in volume]
    assert spec["serviceAccountName"] not in made
    assert not made & set(sources)
