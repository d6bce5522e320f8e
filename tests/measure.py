#!/usr/bin/env python3
"""Measures the release build: time to ready, memory and processor time. Run it by `make measure`.

The limits are those the project promises; a machine that does something else meanwhile may miss them.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
BELLHOP = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "bellhop"
EMULATOR = os.environ["BELLHOP_TEST_EMULATOR"]
POSTGRES = os.environ["BELLHOP_TEST_POSTGRES_URL"]
STARTS = 5
IDLE_SECONDS = 60
LIMITS = {"ready_ms": 500, "rss_mib": 20, "cpu_percent": 1}


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ready = start_to_ready(folder)
        rss, cpu = idle(folder)
    results = {"ready_ms": ready, "rss_mib": rss, "cpu_percent": cpu}
    missed = 0
    for name, value in results.items():
        verdict = "ok" if value < LIMITS[name] else "MISSED"
        missed += verdict != "ok"
        print(f"{name:12} {value:8.1f}   limit {LIMITS[name]:4}   {verdict}")
    return 1 if missed else 0


def start_to_ready(folder):
    """The median of several starts on a database that was used before."""
    subscribe("measure-postgres")
    config = configuration("measure-postgres", {"backend": "postgres", "url": POSTGRES})
    subprocess.run([BELLHOP, "migrate", "up"], check=True, env=environment() | {"DATABASE_URL": POSTGRES})
    times = []
    for _ in range(STARTS + 1):
        began = time.monotonic()
        process = start(folder, config)
        wait_until_ready(process, config)
        times.append((time.monotonic() - began) * 1000)
        stop(process)
    return sorted(times[1:])[STARTS // 2]


def idle(folder):
    """Memory after a minute, and the processor time of that minute, start included."""
    subscribe("measure-sqlite")
    config = configuration("measure-sqlite", {"backend": "sqlite", "path": str(folder / "bellhop.db")})
    process = start(folder, config)
    wait_until_ready(process, config)
    print(f"idle for {IDLE_SECONDS} s ...", file=sys.stderr)
    time.sleep(IDLE_SECONDS)
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    rss_kib = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(stat[11]) + int(stat[12])
    stop(process)
    return rss_kib / 1024, 100 * ticks / os.sysconf("SC_CLK_TCK") / IDLE_SECONDS


def configuration(name, store):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return {
        "pubsub": {"project": "measure", "subscription": name},
        "store": store,
        "handler": {"kind": "echo"},
        "server": {"listen": f"127.0.0.1:{port}"},
    }


def environment():
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "PUBSUB_EMULATOR_HOST": EMULATOR}


def start(folder, config):
    file = folder / "bellhop.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    log = open(folder / "bellhop.log", "ab")
    return subprocess.Popen([BELLHOP, "run", "--config", file], env=environment(), stdout=log, stderr=log)


def wait_until_ready(process, config):
    url = f"http://{config['server']['listen']}/healthz/ready"
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if process.poll() is not None:
            sys.exit(f"bellhop ended with {process.returncode} before it was ready")
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.005)
    sys.exit("bellhop is not ready after 30 s")


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)


def subscribe(name):
    put(f"projects/measure/topics/{name}", {})
    put(f"projects/measure/subscriptions/{name}", {"topic": f"projects/measure/topics/{name}"})


def put(path, body):
    request = urllib.request.Request(
        f"http://{EMULATOR}/v1/{path}",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
        method="PUT",
    )
    urllib.request.urlopen(request, timeout=10).close()


if __name__ == "__main__":
    sys.exit(main())
