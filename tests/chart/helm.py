"""The only place that knows how charts are rendered: Helm's own engine, as a library.

The library's public `render` has no way to say which cluster is meant, so its native call is used here, and only here.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import helm_python
import yaml
from helm_python import _native

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "bellhop"

RELEASE = "chat"
NAMESPACE = "apps"

# What a cluster with all optional operators answers.
CRD_APIS = (
    "keda.sh/v1alpha1",
    "monitoring.coreos.com/v1",
    "monitoring.googleapis.com/v1",
)


class Refused(Exception):
    """Helm did not render: the schema, a guard or a template said no."""


@dataclass(frozen=True)
class Rendered:
    """What `helm template` would print, by template, and the notes."""

    files: dict[str, str]
    notes: str

    @property
    def objects(self) -> list[dict]:
        return [
            document
            for text in self.files.values()
            for document in yaml.safe_load_all(text)
            if document
        ]

    def all(self, kind: str) -> list[dict]:
        return [found for found in self.objects if found["kind"] == kind]

    def one(self, kind: str) -> dict:
        found = self.all(kind)
        assert len(found) == 1, f"{len(found)} objects of kind {kind}"
        return found[0]


@cache
def load(path: Path = CHART) -> helm_python.Chart:
    return helm_python.Chart.load(path)


def render(
    values: dict | None = None,
    *,
    kube: str = "1.35.0",
    crds: bool = True,
    chart: Path = CHART,
    release: str = RELEASE,
) -> Rendered:
    options = {
        "name": release,
        "namespace": NAMESPACE,
        "kube_version": f"v{kube}",
        "api_versions": list(CRD_APIS) if crds else [],
    }
    try:
        answer = _native.call_string(
            "helm_render", load(chart)._raw(), json.dumps(values or {}), json.dumps(options)
        )
    except helm_python.HelmError as error:
        raise Refused(str(error)) from None
    files = json.loads(answer)
    notes = "".join(text for path, text in files.items() if path.endswith("NOTES.txt"))
    kept = {path: text for path, text in files.items() if path.endswith(".yaml") and text.strip()}
    return Rendered(kept, notes)


def lint(values: dict) -> list[str]:
    report = helm_python.lint(CHART, values, strict=True)
    return [message["error"] for message in report["messages"] if message["severity"] > 1] + report["errors"]


def package(destination: Path) -> str:
    destination.mkdir(parents=True, exist_ok=True)
    return helm_python.package(CHART, destination=destination)


if __name__ == "__main__":
    # Keeps the chart of a release as the one that the next is compared with.
    sys.stdout.write(package(Path(__file__).parent / "previous") + "\n")
