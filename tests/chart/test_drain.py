"""The rendered configuration against Google's emulator: SIGTERM within the rendered grace period loses nothing."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import threading
import urllib.request
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import helm
import pods
from daemon import environment, worker, written
from scenarios import merge, scenario

SAMPLE = json.loads((helm.ROOT / "src" / "event" / "samples" / "chat.message.json").read_text())["data"]
# The emulator sends the next delivery to a stream that is gone, and again one deadline (10 s) later.
LONG = 60


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def emulator(tmp_path):
    """Address of Google's emulator: the one that tests/run.sh started, or one of its own."""
    if shared := os.environ.get("BELLHOP_TEST_EMULATOR"):
        yield f"http://{shared}"
        return
    port = free_port()
    command = [helm.ROOT / "tests" / "servers" / "emulator.sh", "run", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = []
    try:
        for line in server.stdout:
            said.append(line)
            if "Server started" in line:
                break
        else:
            pytest.fail(f"Google's Pub/Sub emulator does not start (tests/setup.sh says how to get it):\n{''.join(said)}", pytrace=False)
        threading.Thread(target=server.stdout.read, daemon=True).start()
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def send(method: str, url: str, body: dict) -> dict:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=LONG) as answer:
        return json.loads(answer.read() or "{}")


class Handler:
    """A handler that holds each event until it is let go, and remembers the ids that it has finished."""

    def __init__(self):
        self.begun, self.go, self.finished = threading.Semaphore(0), threading.Event(), []
        outer = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                outer.begun.release()
                outer.go.wait(LONG)
                outer.finished.append(self.headers["bellhop-event-id"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}/events"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def handler():
    found = Handler()
    yield found
    found.go.set()
    found.server.shutdown()


def test_sigterm_within_the_rendered_grace_loses_nothing(bellhop, emulator, handler, tmp_path):
    topic, subscription = "v1/projects/my-project/topics/chart-drain", "v1/projects/my-project/subscriptions/chart-drain"
    send("PUT", f"{emulator}/{topic}", {})
    send("PUT", f"{emulator}/{subscription}", {"topic": topic.removeprefix("v1/"), "ackDeadlineSeconds": 10})
    # An old event would be too old to handle.
    now = datetime.now(timezone.utc).isoformat()
    events = [
        merge(SAMPLE, {"eventTime": now, "message": {"createTime": now, "name": f"spaces/AAAA/messages/{number}.{number}"}})
        for number in (1, 2)
    ]
    port = free_port()
    values = merge(
        scenario("sqlite"),
        {
            "config": {
                "pubsub": {"subscription": "chart-drain", "endpoint": emulator, "lease_extension": "10s"},
                "worker": {"concurrency": 1},
                "store": {"path": f"{tmp_path}/store/bellhop.db"},
                "handler": {"kind": "http", "command": [], "url": handler.url},
                "server": {"listen": f"0.0.0.0:{port}"},
            },
            "containerPort": port,
            "extraContainers": [{"name": "handler", "image": "registry.example/handler:7"}],
        },
    )
    (tmp_path / "store").mkdir()
    rendered = helm.render(values)
    grace = pods.spec_of(rendered.one("Deployment"))["terminationGracePeriodSeconds"]
    container = worker(rendered)
    variables = environment(container) | {"BELLHOP_CONFIG": str(written(rendered, tmp_path))}

    def start() -> subprocess.Popen:
        return subprocess.Popen([bellhop, *container["args"]], env=variables, stderr=subprocess.PIPE, text=True)

    first = start()
    try:
        data = [{"data": base64.b64encode(json.dumps(event).encode()).decode()} for event in events]
        send("POST", f"{emulator}/{topic}:publish", {"messages": data})
        assert handler.begun.acquire(timeout=LONG)
        first.terminate()
        assert any("Draining on SIGTERM" in line for line in first.stderr)
        handler.go.set()
        assert first.wait(timeout=grace) == 0
    finally:
        first.kill()
    assert len(handler.finished) == 1

    second = start()
    try:
        assert handler.begun.acquire(timeout=LONG)
        second.terminate()
        assert second.wait(timeout=grace) == 0
    finally:
        second.kill()

    assert len(handler.finished) == len(set(handler.finished)) == 2
