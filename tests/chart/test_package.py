"""What a release publishes: the packaged chart, its signature, and the artefact in a registry."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from pathlib import Path

import helm_python
import pytest

import helm
import registry
from scenarios import names, scenario

CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
SIGNATURE_LAYER = "application/vnd.cncf.helm.chart.provenance.v1.prov"
NAME = "bellhop test"


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    return Path(helm.package(tmp_path_factory.mktemp("packaged")))


@pytest.fixture(scope="module")
def key(tmp_path_factory) -> registry.Key:
    return registry.make_key(NAME, tmp_path_factory.mktemp("keys") / "ours")


@pytest.fixture(scope="module")
def signed(archive, key) -> Path:
    helm_python.sign(archive, key=key.name, keyring=key.secret)
    return archive


@pytest.fixture(scope="module")
def server():
    with registry.serving() as found:
        yield found


@pytest.fixture(scope="module")
def pushed(server, signed, client) -> helm_python.RegistryClient:
    client.push(signed, server.charts, plain_http=True)
    return client


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> helm_python.RegistryClient:
    # The user's own logins are none of the test's business.
    credentials = tmp_path_factory.mktemp("client") / "credentials.json"
    with helm_python.RegistryClient(plain_http=True, credentials_file=credentials) as found:
        yield found


def version(path: Path) -> str:
    return path.name.removeprefix("bellhop-").removesuffix(".tgz")


def test_the_archive_holds_the_chart_and_nothing_of_its_tests(archive):
    with tarfile.open(archive) as found:
        inside = set(found.getnames())

    assert {"bellhop/Chart.yaml", "bellhop/values.yaml", "bellhop/values.schema.json", "bellhop/README.md"} <= inside
    ours = {f"bellhop/{path.relative_to(helm.CHART)}" for path in helm.CHART.rglob("*") if path.is_file()}
    assert inside == {path for path in ours if not path.startswith("bellhop/ci/")}


@pytest.mark.parametrize("name", names())
def test_the_archive_renders_as_the_folder_does(archive, name):
    assert helm.render(scenario(name), chart=archive) == helm.render(scenario(name))


def test_the_signature_names_who_signed_and_what(signed, key):
    found = helm_python.verify(signed, key.public)

    assert found["signed_by"] == [NAME]
    assert found["file_name"] == signed.name
    assert found["file_hash"] == helm_python.digest(signed) == f"sha256:{hashlib.sha256(signed.read_bytes()).hexdigest()}"


def test_an_altered_archive_does_not_verify(signed, key, tmp_path):
    altered = Path(shutil.copy(signed, tmp_path))
    shutil.copy(f"{signed}.prov", tmp_path)
    assert helm_python.verify(altered, key.public)

    altered.write_bytes(altered.read_bytes() + b"\0")

    with pytest.raises(helm_python.HelmError, match="sha256 sum does not match"):
        helm_python.verify(altered, key.public)


def test_a_stranger_s_key_does_not_verify(signed, tmp_path):
    stranger = registry.make_key("a stranger", tmp_path / "theirs")

    with pytest.raises(helm_python.HelmError, match="unknown entity"):
        helm_python.verify(signed, stranger.public)


def test_an_archive_without_a_signature_does_not_verify(signed, key, tmp_path):
    alone = Path(shutil.copy(signed, tmp_path))

    with pytest.raises(helm_python.HelmError, match="could not load provenance file"):
        helm_python.verify(alone, key.public)


def test_a_registry_lists_what_was_pushed(pushed, server, signed):
    assert pushed.tags(f"{server.charts}/bellhop") == [version(signed)]


def test_what_is_pulled_is_what_was_pushed(pushed, server, signed, tmp_path):
    pushed.pull(f"{server.charts}/bellhop", version=version(signed), destination=tmp_path, plain_http=True)

    pulled = tmp_path / signed.name
    assert pulled.read_bytes() == signed.read_bytes()
    assert helm.render(scenario("minimal"), chart=pulled) == helm.render(scenario("minimal"))


def test_the_signature_travels_with_the_chart(pushed, server, signed, key, tmp_path):
    layers = server.layers("charts/bellhop", version(signed))

    archive, signature = tmp_path / signed.name, tmp_path / "pulled.prov"
    archive.write_bytes(layers[CHART_LAYER])
    signature.write_bytes(layers[SIGNATURE_LAYER])
    assert helm_python.verify(archive, key.public, provenance_file=signature)["signed_by"] == [NAME]


def test_the_digest_of_the_artefact_is_that_of_its_manifest(pushed, server, signed):
    found = pushed.resolve(f"{server.charts}/bellhop:{version(signed)}")

    assert found["digest"] == f"sha256:{hashlib.sha256(server.get(f'charts/bellhop/manifests/{version(signed)}')).hexdigest()}"
