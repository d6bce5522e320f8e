"""What the CronJobs of floors run, run by a real kubectl against an API server that remembers what it was asked."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

import helm
import pods
from scenarios import merge, scenario

DISCOVERY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "autoscaling",
                "versions": [{"groupVersion": "autoscaling/v2", "version": "v2"}],
                "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"},
            }
        ],
    },
    "/apis/autoscaling/v2": {
        "kind": "APIResourceList",
        "groupVersion": "autoscaling/v2",
        "resources": [
            {"name": "horizontalpodautoscalers", "singularName": "", "namespaced": True, "kind": "HorizontalPodAutoscaler", "verbs": ["get", "patch"]}
        ],
    },
}


class ApiServer:
    """Knows one kind, and answers each patch with the object it names."""

    def __init__(self):
        self.asked = []
        outer = self

        class Answer(BaseHTTPRequestHandler):
            def send(self, status: int, document: dict):
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                path = urlsplit(self.path).path
                outer.asked.append(("GET", path, {}, None, None))
                self.send(200, DISCOVERY[path]) if path in DISCOVERY else self.send(404, {"kind": "Status", "code": 404})

            def do_PATCH(self):
                url = urlsplit(self.path)
                body = yaml.safe_load(self.rfile.read(int(self.headers["content-length"])))
                outer.asked.append(("PATCH", url.path, parse_qs(url.query), self.headers["content-type"], body))
                self.send(200, {**body, "metadata": {**body["metadata"], "managedFields": []}})

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def api_server():
    found = ApiServer()
    yield found
    found.server.shutdown()


@pytest.fixture(scope="session")
def kubectl() -> str:
    found = subprocess.run([helm.ROOT / "tests" / "chart" / "kubectl.sh"], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        pytest.fail("kubectl is missing, see above", pytrace=False)
    return found.stdout.strip()


@pytest.mark.parametrize(("way", "least"), [("office-up", 5), ("office-down", 2), ("month-end-up", 4)])
def test_kubectl_writes_the_floor_and_nothing_else(way, least, kubectl, api_server, tmp_path):
    rendered = helm.render(scenario("hpa-floors"))
    job = next(found for found in rendered.all("CronJob") if found["metadata"]["name"] == f"chat-bellhop-floor-{way}")
    (container,) = pods.spec_of(job)["containers"]
    for name, text in next(found["data"] for found in rendered.all("ConfigMap") if "down.yaml" in found["data"]).items():
        (tmp_path / name).write_text(text)
    assert container["command"] == ["kubectl"]
    # In the pod it finds the server by its account; the folders are the container's mounts.
    arguments = [text.replace("/floors/", f"{tmp_path}/").replace("/tmp/cache", f"{tmp_path}/cache") for text in container["args"]]

    done = subprocess.run(
        [kubectl, *arguments, f"--server={api_server.url}"],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=60, check=False,
    )

    assert done.returncode == 0, done.stderr
    writes = [asked for asked in api_server.asked if asked[0] != "GET"]
    assert [path for method, path, *_ in api_server.asked if method == "GET" and "horizontalpodautoscalers" in path] == []
    ((_, path, query, kind, body),) = writes
    assert path == "/apis/autoscaling/v2/namespaces/apps/horizontalpodautoscalers/chat-bellhop"
    assert (query["fieldManager"], query["force"]) == (["bellhop-floor"], ["true"])
    assert kind == "application/apply-patch+yaml"
    assert body["spec"] == {"minReplicas": least}


def test_the_role_allows_what_kubectl_asked():
    rendered = helm.render(scenario("hpa-floors"))
    (rule,) = rendered.one("Role")["rules"]
    hpa = rendered.one("HorizontalPodAutoscaler")["metadata"]

    assert (rule["apiGroups"], rule["resources"]) == (["autoscaling"], ["horizontalpodautoscalers"])
    assert rule["resourceNames"] == [hpa["name"]] and "patch" in rule["verbs"]
    assert hpa["namespace"] == rendered.one("Role")["metadata"]["namespace"]


def test_the_image_is_a_value():
    def image(**over) -> str:
        values = merge(scenario("hpa-floors"), {"autoscaling": {"floorJob": {"image": over}}})
        return pods.spec_of(helm.render(values).all("CronJob")[0])["containers"][0]["image"]

    digest = scenario("hpa-floors")["autoscaling"]["floorJob"]["image"]["digest"]
    assert image() == f"registry.example/kubectl@{digest}"
    assert image(digest="", tag="v1.35.0") == "registry.example/kubectl:v1.35.0"
    assert image(repository="registry.k8s.io/kubectl", digest="") == "registry.k8s.io/kubectl:v1.33.4"


def test_floors_and_the_test_pod_run_where_the_workers_may():
    place = {"nodeSelector": {"pool": "chat"}, "tolerations": [{"key": "chat", "operator": "Exists"}]}
    rendered = helm.render(merge(scenario("hpa-floors"), place))

    for document in rendered.objects:
        if spec := pods.spec_of(document):
            assert {key: spec.get(key) for key in place} == place, document["kind"]
