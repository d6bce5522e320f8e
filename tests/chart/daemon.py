"""The real daemon, as the rendered chart would start it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import helm
import pods

# The daemon is told that it runs in Kubernetes, so that its checks for that apply.
IN_KUBERNETES = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "PATH": os.environ["PATH"]}
SECRETS = {
    "DATABASE_URL": "postgres://bellhop:secret@127.0.0.1:9/bellhop",
    "BELLHOP__STORE__MIGRATE_URL": "postgres://bellhop:secret@127.0.0.1:9/bellhop",
    "BELLHOP__HANDLER__SIGNING_SECRET": "a signing secret",
    "BELLHOP__HANDLER__BEARER_TOKEN": "a-token",
}


def worker(rendered: helm.Rendered) -> dict:
    spec = pods.spec_of(rendered.one("Deployment"))
    return next(container for container in spec["containers"] if container["name"] == "bellhop")


def environment(container: dict, secrets: dict | None = None) -> dict:
    """The container's variables, with a value for each that refers to a secret."""
    known = SECRETS | (secrets or {})
    found = dict(IN_KUBERNETES)
    for variable in container["env"]:
        name = variable["name"]
        found[name] = variable["value"] if "value" in variable else known.get(name, "x")
    return found


def written(rendered: helm.Rendered, tmp_path: Path) -> Path:
    maps = [found for found in rendered.all("ConfigMap") if "bellhop.yaml" in found.get("data", {})]
    assert len(maps) == 1
    path = tmp_path / "bellhop.yaml"
    # The program of the exec handler is in a volume; the daemon looks whether it is there.
    path.write_text(maps[0]["data"]["bellhop.yaml"].replace("/opt/handler/run", "/bin/true"))
    return path


def run(binary: Path, arguments: list[str], variables: dict) -> subprocess.CompletedProcess:
    return subprocess.run([binary, *arguments], env=variables, capture_output=True, text=True, timeout=60)
