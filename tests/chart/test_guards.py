"""Values that contradict each other are refused with a message that helps; their nearest neighbours pass."""

from __future__ import annotations

import pytest

import guards_pods
import guards_scaling
import helm
from guards_pods import CLUSTER_GUARDS, without_secret
from scenarios import hpa

GUARDS = {**guards_scaling.GUARDS, **guards_pods.GUARDS}


def refusal(values: dict, **cluster) -> list[str]:
    with pytest.raises(helm.Refused) as caught:
        helm.render(values, **cluster)
    assert "These values can not be deployed" in str(caught.value)
    return [line.removeprefix("  - ") for line in str(caught.value).splitlines() if line.startswith("  - ")]


@pytest.mark.parametrize("name", GUARDS)
def test_a_contradiction_is_refused_in_these_words(name):
    values, message, _ = GUARDS[name]

    assert message in refusal(values)


@pytest.mark.parametrize("name", GUARDS)
def test_its_neighbour_passes(name):
    *_, neighbour = GUARDS[name]

    assert helm.render(neighbour).objects


@pytest.mark.parametrize("name", CLUSTER_GUARDS)
def test_a_missing_api_is_refused_in_these_words(name):
    values, message, _ = CLUSTER_GUARDS[name]

    assert refusal(values, crds=False) == [message]
    assert helm.render(values, crds=True).objects


@pytest.mark.parametrize("name", CLUSTER_GUARDS)
def test_a_missing_api_that_is_expected_passes(name):
    *_, neighbour = CLUSTER_GUARDS[name]

    assert helm.render(neighbour, crds=False).objects


def test_scaling_to_zero_passes_where_kubernetes_can_do_it():
    values = hpa(autoscaling={"minReplicas": 0})

    assert refusal(values, kube="1.36.3")
    assert helm.render(values, kube="1.37.0").one("HorizontalPodAutoscaler")["spec"]["minReplicas"] == 0


def test_one_mistake_gives_one_message():
    lines = {name: refusal(values) for name, (values, _, _) in GUARDS.items()}

    # These two lack a value that is needed without autoscaling, too.
    assert {name for name, found in lines.items() if len(found) > 1} == {
        "6 autoscaling without a project",
        "6 autoscaling without a subscription",
    }


def test_all_mistakes_are_told_together():
    values = without_secret(hpa(replicaCount=4, image={"tag": "latest"}, config={"handler": {"url": ""}}))

    assert len(refusal(values)) == 4


def test_every_guard_of_the_list_is_here():
    # 18 is among those the cluster decides.
    numbers = {int(name.split()[0]) for name in GUARDS if name[0].isdigit()} | {18}

    assert numbers == set(range(1, 24))
