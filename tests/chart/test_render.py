"""Every scenario, on every Kubernetes, with and without other operators' kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
import yamllint.config
import yamllint.linter

import helm
import pods
import schemas
from scenarios import CI, KUBES, names, scenario

YAMLLINT = yamllint.config.YamlLintConfig("rules: {key-duplicates: enable, anchors: enable}")

matrix = pytest.mark.parametrize("crds", [True, False], ids=["crds", "bare"])
on_each = pytest.mark.parametrize("kube", KUBES)
each = pytest.mark.parametrize("name", names())


def test_there_are_at_least_twelve_scenarios():
    assert len(names()) >= 12


@each
@on_each
@matrix
def test_objects_fit_strict_schemas(name, kube, crds):
    rendered = helm.render(scenario(name), kube=kube, crds=crds)

    found = [problem for document in rendered.objects for problem in schemas.problems(document, kube)]

    assert found == []
    assert rendered.objects


@each
@matrix
def test_no_key_is_written_twice(name, crds):
    rendered = helm.render(scenario(name), crds=crds)

    found = {path: list(yamllint.linter.run(text, YAMLLINT)) for path, text in rendered.files.items()}

    assert {path: problems for path, problems in found.items() if problems} == {}


@pytest.mark.parametrize("path", [helm.CHART / "values.yaml", helm.CHART / "Chart.yaml", *sorted(CI.glob("*.yaml"))], ids=lambda path: path.name)
def test_no_key_of_a_source_is_written_twice(path):
    assert list(yamllint.linter.run(path.read_text(), YAMLLINT)) == []


@each
def test_no_object_is_there_twice(name):
    objects = helm.render(scenario(name)).objects

    keys = [(document["apiVersion"], document["kind"], document["metadata"].get("namespace", ""), document["metadata"]["name"]) for document in objects]

    assert sorted(keys) == sorted(set(keys))


@each
def test_pods_meet_the_restricted_standard(name):
    rendered = helm.render(scenario(name))

    specs = {f"{document['kind']}/{document['metadata']['name']}": pods.spec_of(document) for document in rendered.objects}
    found = {key: pods.not_restricted(spec) for key, spec in specs.items() if spec}

    assert found
    assert {key: why for key, why in found.items() if why} == {}


@each
def test_the_root_file_system_is_read_only_and_tokens_stay_away(name):
    rendered = helm.render(scenario(name))

    for document in rendered.objects:
        spec = pods.spec_of(document)
        if not spec:
            continue
        for container in pods.containers(spec):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
        speaks_to_the_api = document["kind"] == "CronJob"
        assert spec["automountServiceAccountToken"] is speaks_to_the_api


@each
def test_no_variable_is_set_twice(name):
    rendered = helm.render(scenario(name))

    for spec in filter(None, map(pods.spec_of, rendered.objects)):
        for container in pods.containers(spec):
            variables = [variable["name"] for variable in container.get("env", [])]
            assert sorted(variables) == sorted(set(variables))


@each
def test_lint_finds_nothing(name):
    assert helm.lint(scenario(name)) == []


@each
def test_names_keep_their_limits_with_a_long_release(name):
    long = helm.render(scenario(name), release="a-release-with-a-name-of-fifty-three-characters-in-it")

    for document in long.objects:
        limit = 52 if document["kind"] == "CronJob" else 63
        assert len(document["metadata"]["name"]) <= limit


@each
def test_the_packaged_chart_renders_the_same(name, tmp_path):
    archive = Path(helm.package(tmp_path))

    assert helm.render(scenario(name), chart=archive).files == helm.render(scenario(name)).files


def test_a_typo_in_a_known_kind_is_caught():
    hpa = helm.render(scenario("hpa")).one("HorizontalPodAutoscaler")
    hpa["spec"]["maxReplica"] = 3

    assert schemas.problems(hpa, "1.35.0") != []


def test_a_typo_in_another_operators_kind_is_caught():
    scaled = helm.render(scenario("keda")).one("ScaledObject")
    scaled["spec"]["triggers"][0]["metadata"]["treshold"] = "3"

    assert schemas.problems(scaled, "1.35.0") != []


def test_an_unknown_kind_is_a_failure():
    hpa = helm.render(scenario("hpa")).one("HorizontalPodAutoscaler")
    hpa["apiVersion"] = "autoscaling/v2beta2"

    assert "Couldn't find schema" in schemas.problems(hpa, "1.35.0")[0]


@pytest.mark.parametrize(
    "broken",
    [
        {"hostNetwork": True},
        {"securityContext": {}},
        {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]},
    ],
    ids=["host network", "no context", "host path"],
)
def test_a_pod_that_is_not_restricted_is_caught(broken):
    spec = pods.spec_of(helm.render(scenario("minimal")).one("Deployment"))

    assert pods.not_restricted({**spec, **broken}) != []
