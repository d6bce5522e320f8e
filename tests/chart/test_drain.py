"""The rendered configuration against Google's emulator: SIGTERM within the rendered grace period loses nothing."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.request
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import helm
import pods
from daemon import environment, run, worker, written
from scenarios import merge, minimal, scenario

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


def servers(command: str, *arguments) -> str:
    script = helm.ROOT / "tests" / "servers" / "postgres.sh"
    # The server keeps the script's output open where it could.
    return subprocess.run([script, command, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@pytest.fixture
def postgres():
    """URL of an empty database: on the server that tests/run.sh started, or on one of its own."""
    shared = os.environ.get("BELLHOP_TEST_POSTGRES_URL")
    if shared is None:
        # Not under pytest's folder: PostgreSQL may run as another user, who must be able to walk there.
        folder = Path(tempfile.mkdtemp(prefix="bellhop-chart.", dir="/tmp"))
        folder.chmod(0o755)
        servers("init", folder / "postgres")
        port = free_port()
        servers("start", folder / "postgres", port)
        url = f"postgres://postgres@127.0.0.1:{port}/postgres"
    else:
        url = shared
    name = f"chart_drain_{uuid.uuid4().hex}"
    psql = [f"{servers('find')}/psql", "--quiet", "--no-psqlrc", url, "--command"]
    subprocess.run([*psql, f"CREATE DATABASE {name}"], check=True)
    yield url.rpartition("/")[0] + f"/{name}"
    if shared is None:
        servers("stop", folder / "postgres", "immediate")
        shutil.rmtree(folder)
    else:
        subprocess.run([*psql, f"DROP DATABASE {name} WITH (FORCE)"], check=True)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path) -> tuple[dict, dict]:
    """Values with a store, and the variables that its Secret would hold."""
    if request.param == "sqlite":
        (tmp_path / "store").mkdir()
        return merge(scenario("sqlite"), {"config": {"store": {"path": f"{tmp_path}/store/bellhop.db"}}}), {}
    return minimal(), {"DATABASE_URL": request.getfixturevalue("postgres")}


def test_sigterm_within_the_rendered_grace_loses_nothing(bellhop, emulator, handler, store, tmp_path):
    name = f"chart-drain-{uuid.uuid4().hex}"
    topic, subscription = f"v1/projects/my-project/topics/{name}", f"v1/projects/my-project/subscriptions/{name}"
    send("PUT", f"{emulator}/{topic}", {})
    send("PUT", f"{emulator}/{subscription}", {"topic": topic.removeprefix("v1/"), "ackDeadlineSeconds": 10})
    # An old event would be too old to handle.
    now = datetime.now(timezone.utc).isoformat()
    events = [
        merge(SAMPLE, {"eventTime": now, "message": {"createTime": now, "name": f"spaces/AAAA/messages/{number}.{number}"}})
        for number in (1, 2)
    ]
    port = free_port()
    base, secrets = store
    values = merge(
        base,
        {
            "config": {
                "pubsub": {"subscription": name, "endpoint": emulator, "lease_extension": "10s"},
                "worker": {"concurrency": 1},
                "handler": {"kind": "http", "command": [], "url": handler.url},
                "server": {"listen": f"0.0.0.0:{port}"},
            },
            "containerPort": port,
            "extraContainers": [{"name": "handler", "image": "registry.example/handler:7"}],
        },
    )
    rendered = helm.render(values)
    grace = pods.spec_of(rendered.one("Deployment"))["terminationGracePeriodSeconds"]
    container = worker(rendered)
    variables = environment(container, secrets) | {"BELLHOP_CONFIG": str(written(rendered, tmp_path))}
    for job in rendered.all("Job"):
        (migration,) = pods.spec_of(job)["containers"]
        done = run(bellhop, migration["args"], environment(migration, secrets))
        assert done.returncode == 0, done.stderr

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
