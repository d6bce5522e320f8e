"""What the documentation tells people to write is rendered: every block of values, and every value named in a sentence."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml

import helm
import pods
import schemas
from scenarios import KUBES, merge
from test_values import SCHEMA, VALUES

PAGES = [
    helm.ROOT / "docs" / "DEPLOYMENT.md",
    helm.ROOT / "docs" / "AUTOSCALING.md",
    helm.CHART / "README.md",
    helm.CHART / "UPGRADING.md",
    *sorted((helm.ROOT / "docs" / "runbooks").glob("*.md")),
]

# What deploy/terraform puts out as helm_values with its defaults (delivery.tftest.hcl holds it to these keys).
OF_TERRAFORM = {
    "config": {
        "pubsub": {"project": "my-project", "subscription": "chat-events-bellhop"},
        "claims": {"retention": "864000s"},
    },
    "pubsub": {"messageRetention": "604800s"},
    "serviceAccount": {"name": "bellhop"},
    "workloadIdentity": {"gcpServiceAccount": "bellhop@my-project.iam.gserviceaccount.com"},
}


def blocks(page) -> list[dict]:
    """The YAML blocks of a page that are values of the chart; others, such as another program's rules, are only read."""
    found = [yaml.safe_load(text) for text in re.findall(r"^ *```yaml\n(.*?)^ *```$", page.read_text(), re.DOTALL | re.MULTILINE)]
    return [block for block in found if set(block) & set(VALUES)]


def complete() -> dict:
    """The values that DEPLOYMENT.md arrives at."""
    return merge(OF_TERRAFORM, blocks(PAGES[0])[0])


BLOCKS = [(page.name, number, block) for page in PAGES for number, block in enumerate(blocks(page))]


def test_the_pages_have_values():
    assert {name for name, _, _ in BLOCKS} == {"DEPLOYMENT.md", "AUTOSCALING.md", "README.md"}
    assert len(BLOCKS) >= 6


@pytest.mark.parametrize(("name", "number", "block"), BLOCKS, ids=[f"{name} {number}" for name, number, _ in BLOCKS])
@pytest.mark.parametrize("kube", KUBES)
def test_every_block_of_values_renders(name, number, block, kube):
    values = complete()
    if "autoscaling" in block:
        # As both pages say.
        del values["replicaCount"]
        block = merge({"autoscaling": {"mode": "hpa"}}, block)

    rendered = helm.render(merge(values, block), kube=kube)

    assert [problem for document in rendered.objects for problem in schemas.problems(document, kube)] == []
    assert [problem for spec in filter(None, map(pods.spec_of, rendered.objects)) for problem in pods.not_restricted(spec)] == []


def test_the_values_of_the_charts_page_need_nothing_else():
    (values,) = blocks(helm.CHART / "README.md")

    assert helm.render(values).objects


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_shell(page):
    for text in re.findall(r"^ *```sh\n(.*?)^ *```$", page.read_text(), re.DOTALL | re.MULTILINE):
        done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, text + done.stderr
        for path in re.findall(r"(?<![\w/:])(?:deploy|charts|tests|config)/[\w./-]+", text):
            assert (helm.ROOT / path).exists(), path


def test_what_deployment_arrives_at_needs_nothing_else():
    rendered = helm.render(complete())
    account = rendered.one("ServiceAccount")["metadata"]

    # The names that Terraform granted roles to.
    assert account["name"] == "bellhop"
    assert account["annotations"] == {"iam.gke.io/gcp-service-account": "bellhop@my-project.iam.gserviceaccount.com"}


def test_the_chart_of_a_release_called_bellhop_has_the_names_that_deployment_uses():
    rendered = helm.render(complete(), release="bellhop")

    assert rendered.one("Deployment")["metadata"]["name"] == "bellhop"
    assert rendered.one("PodMonitoring")["metadata"]["name"] == "bellhop"


def node(schema: dict) -> dict:
    while "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def exists(path: str) -> bool:
    """Whether the schema has a value of this path, as one of the chart's or as one of the daemon's."""
    for start in (SCHEMA, SCHEMA["properties"]["config"]):
        at = node(start)
        for key in path.split("."):
            inner = at.get("properties", {}).get(key)
            if inner is None:
                free = at.get("additionalProperties", True) if "properties" not in at else False
                inner = free if isinstance(free, dict) else {} if free else None
            if inner is None:
                break
            at = node(inner)
        else:
            return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_value_named_in_a_sentence_exists(page):
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    if page.name == "UPGRADING.md":
        # Its table of what is not here any more.
        text = re.sub(r"^\| `[\w.]+` \|", "|", text, flags=re.MULTILINE)
    roots = set(VALUES) | set(SCHEMA["properties"]["config"]["properties"])
    named = {found for found in re.findall(r"`([a-z]\w*(?:\.\w+)+)(?=[`:=\s])", text) if found.split(".")[0] in roots}

    # Given in the daemon's file or as secrets, and refused as values.
    secret = {"store.url", "store.replicas", "store.single_process", "handler.signing_secret"}
    assert {path for path in named if not exists(path)} - secret == set()


def test_a_value_that_is_not_there_would_be_noticed():
    assert not exists("autoscaling.targets")
    assert not exists("config.worker.slots")
    assert exists("metrics.prometheusRule.alerts.BellhopDown.threshold")


def test_terraforms_values_are_those_of_its_output():
    """The keys here are those that outputs.tf writes."""
    text = (helm.ROOT / "deploy" / "terraform" / "outputs.tf").read_text()
    body = text[text.index("yamlencode({") :]

    for key in re.findall(r'"(\w+)": ', json.dumps(OF_TERRAFORM)):
        assert re.search(rf"\b{key}\s*=", body), key
