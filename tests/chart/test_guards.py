"""Values that contradict each other are refused with a message that helps; their nearest neighbours pass."""

from __future__ import annotations

import json
import re

import pytest

import guards_config
import guards_pods
import guards_scaling
import helm
from guards_config import VERSION_GUARDS
from guards_pods import CLUSTER_GUARDS, without_secret
from scenarios import hpa

GUARDS = {**guards_scaling.GUARDS, **guards_pods.GUARDS, **guards_config.GUARDS}


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


@pytest.mark.parametrize("name", VERSION_GUARDS)
def test_what_a_kubernetes_can_not_do_yet_is_refused_in_these_words(name):
    values, message, before, _ = VERSION_GUARDS[name]

    assert refusal(values, kube=before) == [message]


@pytest.mark.parametrize("name", VERSION_GUARDS)
def test_it_passes_where_kubernetes_can_do_it(name):
    values, _, _, since = VERSION_GUARDS[name]

    assert helm.render(values, kube=since).objects


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


# Problems of alerts, which test_objects.py tries on rules of its own.
TRIED_ELSEWHERE = {
    "metrics.prometheusRule.alerts.%s: there is no such alert",
    "metrics.prometheusRule.alerts.%s: its expression does not end with a number, so there is no threshold to set",
    # test_daemon.py tries each key.
    "%s %s must be a duration from %s to %s",
}


def test_every_message_of_the_templates_is_tried():
    messages = [message for guards in (GUARDS, CLUSTER_GUARDS, VERSION_GUARDS) for _, message, *_ in guards.values()]
    written = {
        json.loads(text).removesuffix("\n")
        for path in (helm.CHART / "templates").glob("_validate*.tpl")
        for text in re.findall(r'printf ("[^"\\]*(?:\\.[^"\\]*)*\\n")', path.read_text())
    }

    def is_tried(text: str) -> bool:
        pattern = ".*".join(map(re.escape, re.split(r"%(?:\.0)?[sdqf]", text)))
        return any(re.fullmatch(pattern, message) for message in messages)

    assert {text for text in written if not text.startswith("\n") and not is_tried(text)} == TRIED_ELSEWHERE
