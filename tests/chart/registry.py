"""A real OCI registry on the loopback, and a key to sign with; each lives as long as the tests that use it."""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

# Port 0: the registry takes a free one and says which.
CONFIGURATION = """
version: 0.1
log: {level: info, formatter: json, accesslog: {disabled: true}}
storage: {inmemory: {}}
http: {addr: "127.0.0.1:0", secret: none}
"""
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True)
class Registry:
    """`host:port` of one that listens."""

    host: str

    @property
    def charts(self) -> str:
        return f"oci://{self.host}/charts"

    def get(self, path: str) -> bytes:
        asked = urllib.request.Request(f"http://{self.host}/v2/{path}", headers={"Accept": MANIFEST})
        # No proxy: it is on this machine.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=30) as answer:
            return answer.read()

    def layers(self, name: str, tag: str) -> dict[str, bytes]:
        """The parts of an artefact, by media type."""
        manifest = json.loads(self.get(f"{name}/manifests/{tag}"))
        return {layer["mediaType"]: self.get(f"{name}/blobs/{layer['digest']}") for layer in manifest["layers"]}


@contextmanager
def serving() -> Iterator[Registry]:
    program = subprocess.run(
        [Path(__file__).with_name("registry.sh")], check=True, capture_output=True, text=True
    ).stdout.strip()
    with TemporaryDirectory(prefix="bellhop-registry.") as folder:
        configuration = Path(folder) / "config.yaml"
        configuration.write_text(CONFIGURATION)
        process = subprocess.Popen([program, "serve", configuration], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            yield Registry(listening(process.stderr))
        finally:
            process.kill()
            process.wait()


def listening(log) -> str:
    """Reads the log until it names the address, and what follows after that to nowhere, so that the registry can go on."""
    said = []
    for line in log:
        said.append(line)
        message = json.loads(line).get("msg", "") if line.startswith("{") else ""
        if message.startswith("listening on "):
            threading.Thread(target=lambda: all(map(str, log)), daemon=True).start()
            return message.removeprefix("listening on ")
    raise AssertionError("the registry does not start:\n" + "".join(said))


@dataclass(frozen=True)
class Key:
    """A key without a passphrase, as the two files that Helm reads."""

    name: str
    secret: Path
    public: Path


def make_key(name: str, folder: Path) -> Key:
    key = Key(name, folder / "secret.gpg", folder / "public.gpg")
    folder.mkdir(parents=True)
    # Short, whatever the folder's name: gpg's agent listens on a socket in there.
    with TemporaryDirectory(prefix="gpg.", dir="/tmp") as home:
        gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
        try:
            subprocess.run([*gpg, "--quick-generate-key", name, "rsa3072", "sign", "1d"], check=True, capture_output=True, text=True)
            key.secret.write_bytes(subprocess.run([*gpg, "--export-secret-keys"], check=True, capture_output=True).stdout)
            key.public.write_bytes(subprocess.run([*gpg, "--export"], check=True, capture_output=True).stdout)
        finally:
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    return key
