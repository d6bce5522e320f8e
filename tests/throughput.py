#!/usr/bin/env python3
"""Measures whole events per second: Google's emulator, PostgreSQL, a handler; bellhop beside two workers of the usual
design (tests/throughput/worker.js and worker.py). Run it by `make throughput`, with options as in
`make throughput ARGS="--events 5000 --before PATH"`.

Each run has an emulator, a subscription and a database of its own, and the whole backlog waits when it starts. Rate:
from the first handler call to the last new event. Processor time: from the first call to two seconds after the last
event, so that settling and acks are in it and starting is not. Emulator, PostgreSQL, handler and contender share one
machine: a rate says how all of them do together, `itself` what the contender costs. `others` are cores that somebody
else used meanwhile: where that is much, believe the processor times rather than the rates.
"""

import argparse
import base64
import contextlib
import datetime
import json
import os
import pathlib
import random
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
BELLHOP = os.environ.get("BELLHOP_TEST_BINARY", TARGET / "release" / "bellhop")
POSTGRES = os.environ["BELLHOP_TEST_POSTGRES_URL"]
PROJECT = "throughput"
TICKS = os.sysconf("SC_CLK_TCK")
LINGER = 2  # seconds in which doubled calls may still come


def main():
    args = arguments()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    peers = [name for name in ("node", "python") if name in args.contenders]
    if peers:
        subprocess.run([HERE / "throughput" / "setup.sh"], check=True)
    contenders = {}
    if "bellhop" in args.contenders:
        for concurrency in args.concurrency:
            contenders[f"bellhop {concurrency}"] = bellhop(BELLHOP, concurrency, args.set)
            if args.before:
                contenders[f"before {concurrency}"] = bellhop(args.before, concurrency, args.set)
    contenders |= {f"{name} worker": worker(name) for name in peers}
    if args.fsync:
        alter_system("SET fsync = on", "SET full_page_writes = on")
    try:
        fsync = psql(POSTGRES, "SHOW fsync")
        print(f"{args.events} events, {args.copies} of them published twice; {args.rounds} rounds; fsync {fsync}")
        return measure(contenders, args)
    finally:
        if args.fsync:
            quietly(alter_system, "RESET fsync", "RESET full_page_writes")


def arguments():
    parser = argparse.ArgumentParser(description="Events per second of bellhop and of two usual workers.")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[64, 256], help="worker.concurrency of bellhop")
    parser.add_argument("--before", metavar="PATH", help="another bellhop, to stand beside the one under test")
    everybody = ["bellhop", "node", "python"]
    parser.add_argument("--contenders", nargs="+", choices=everybody, default=everybody)
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="for every bellhop")
    parser.add_argument("--fsync", action="store_true", help="let PostgreSQL sync its commits, as in production")
    args = parser.parse_args()
    args.copies = args.events // 50
    return args


def measure(contenders, args):
    batches = publications(args.events, args.copies)
    names = list(contenders)
    print("warming up ...", file=sys.stderr)
    once(contenders[names[0]], 1000, publications(1000, 0))
    results = {name: [] for name in names}
    for number in range(args.rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            result = once(contenders[name], args.events, batches)
            results[name].append(result)
            figures = "  ".join(f"{key} {figure:.3f}" for key, figure in result.items())
            print(f"round {number + 1}  {name:15} {figures}", file=sys.stderr)
    return table(results)


def table(results):
    """Medians; the last two columns are multiples of the first line's. Fails when bellhop lost or doubled an event."""
    print(f"{'':44}CPU s per 1000 events                             others' compared")
    print(
        f"{'':15} {'events/s':>9} {'least':>7} {'most':>7}   {'itself':>8}{'postgres':>9}{'emulator':>9}{'handler':>8}"
        f"  missing doubled  cores   rate   CPU"
    )
    first, failed = None, False
    for name, runs in results.items():
        middle = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        rates = [run["rate"] for run in runs]
        missing, doubled = (sum(run[key] for run in runs) for key in ("missing", "doubled"))
        first = first or middle
        failed |= name.startswith("bellhop") and missing + doubled > 0
        print(
            f"{name:15} {middle['rate']:9.0f} {min(rates):7.0f} {max(rates):7.0f}   {middle['itself']:8.3f}"
            f"{middle['postgres']:9.3f}{middle['emulator']:9.3f}{middle['handler']:8.3f}  {missing:7} {doubled:7}"
            f" {middle['others']:6.2f} {middle['rate'] / (first['rate'] or 1):6.2f}"
            f"{middle['itself'] / (first['itself'] or 1):6.2f}"
        )
    return 1 if failed else 0


def bellhop(binary, concurrency, settings):
    def start(folder, run):
        config = {
            "pubsub": {"project": PROJECT, "subscription": run["SUBSCRIPTION"]},
            "worker": {"concurrency": concurrency},
            "store": {"backend": "postgres", "url": run["DATABASE_URL"]},
            "handler": {"url": run["HANDLER"]},
            "server": {"listen": "127.0.0.1:0"},
            "log": {"level": "warn"},
        }
        file = folder / "bellhop.yaml"
        file.write_text(json.dumps(config))  # JSON is YAML
        subprocess.run([binary, "migrate", "up", "--log-level", "warn"], check=True, env=run, stdout=subprocess.DEVNULL)
        return [binary, "run", "--config", file, *(word for it in settings for word in ("--set", it))], run

    return start


def worker(name):
    def start(_, run):
        psql(run["DATABASE_URL"], "CREATE TABLE handled (id text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
        clients, own = TARGET / "clients", TARGET / "throughput"
        if name == "node":
            modules = f"{clients / 'node' / 'node_modules'}:{own / 'node' / 'node_modules'}"
            return ["node", HERE / "throughput" / "worker.js"], run | {"NODE_PATH": modules}
        python = clients / "python" / "bin" / "python"
        return [python, HERE / "throughput" / "worker.py"], run | {"PYTHONPATH": str(own / "python")}

    return start


def once(prepare, events, batches):
    """One contender through one backlog."""
    name = f"throughput_{os.getpid()}_{time.monotonic_ns()}"
    topic, subscription = f"projects/{PROJECT}/topics/{name}", f"projects/{PROJECT}/subscriptions/{name}"
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        psql(POSTGRES, f"CREATE DATABASE {name}")
        stack.callback(quietly, psql, POSTGRES, f"DROP DATABASE {name} WITH (FORCE)")
        server, host = emulator(stack)
        rest("PUT", host, topic, {})
        rest("PUT", host, subscription, {"topic": topic, "ackDeadlineSeconds": 60})
        for batch in batches:
            rest("POST", host, f"{topic}:publish", batch)

        command = [sys.executable, HERE / "throughput" / "handler.py", str(events)]
        handler = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        stack.callback(stop, handler)
        url = f"http://127.0.0.1:{int(handler.stdout.readline())}/events"
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "BELLHOP_TEST_RUN") if key in os.environ}
        run = kept | {
            "PROJECT": PROJECT,
            "SUBSCRIPTION": name,
            "DATABASE_URL": f"{POSTGRES.rsplit('/', 1)[0]}/{name}",
            "HANDLER": url,
            "PUBSUB_EMULATOR_HOST": host,
        }
        command, environment = prepare(folder, run)
        log = stack.enter_context(open(folder / "log", "w+b"))
        contender = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        stack.callback(stop, contender)

        whole = await_line(handler, contender, log, 60)
        began, before = time.monotonic(), processor_times(contender, server, handler)
        whole = whole and await_line(handler, contender, log, 60 + events / 50)
        time.sleep(LINGER)
        seconds, after = time.monotonic() - began, processor_times(contender, server, handler)
        handler.stdin.close()
        seen = json.loads(handler.stdout.read().splitlines()[-1])
    used = {key: after[key] - before[key] for key in after}
    others = used.pop("machine") - sum(used.values())
    result = {"rate": (seen["events"] - 1) / seen["seconds"] if seen["events"] > 1 else 0.0}
    result |= {key: 1000 * spent / events for key, spent in used.items()}
    result |= {"missing": events - seen["events"], "doubled": seen["calls"] - seen["events"]}
    return result | {"others": others / seconds}


def quietly(call, *arguments):
    """Cleans up, where a server that is being stopped itself is no reason to cry."""
    try:
        call(*arguments)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"not cleaned up: {error}", file=sys.stderr)


def await_line(handler, contender, log, seconds):
    """Whether the handler said its next word in time. A contender that ends is the end of the measurement."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and contender.poll() is None:
        if select.select([handler.stdout], [], [], 0.5)[0]:
            return handler.stdout.readline() != b""
    log.seek(0)
    print(log.read()[-3000:].decode(errors="replace"), file=sys.stderr)
    if contender.returncode is not None:
        sys.exit(f"{contender.args[0]} ended with {contender.returncode} while it was measured")
    return False


def stop(process):
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def processor_times(contender, server, handler):
    """Seconds of processor time that each party has used so far, and the whole machine."""
    total = [int(it) for it in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return {
        "itself": processor_time(contender.pid),
        "postgres": postgres_time(),
        "emulator": processor_time(server.pid),
        "handler": processor_time(handler.pid),
        "machine": (sum(total) - total[3] - total[4]) / TICKS,  # neither idle nor waiting for a disk
    }


def processor_time(pid):
    """User and system time."""
    return sum(map(int, process_fields(pid)[11:13])) / TICKS


def postgres_time():
    """The server's and that of its children, ended or not. There are many, so ticks would be too coarse."""
    child = psql(POSTGRES, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    server = process_fields(child)[1]
    spent = sum(map(int, process_fields(server)[13:15])) / TICKS
    for pid in [server, *pathlib.Path(f"/proc/{server}/task/{server}/children").read_text().split()]:
        with contextlib.suppress(FileNotFoundError):
            spent += int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return spent


def process_fields(pid):
    """From the state on."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def emulator(stack):
    """One for each run: it keeps acked messages in memory, so that a later run would find it slower, or dead. Where its
    heap is nearly full, collecting garbage is what would be measured."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [HERE / "servers" / "emulator.sh", "run", str(port)]
    environment = os.environ | {"BELLHOP_TEST_EMULATOR_HEAP": "2g"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(stop, process)
    host, end = f"127.0.0.1:{port}", time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://{host}/", timeout=5).close()
            return process, host
        time.sleep(0.1)
    sys.exit("Google's Pub/Sub emulator does not start")


def publications(events, copies):
    """The bodies of the publish calls. Twice-published events come again within the next thousand, as from Chat."""
    sample = json.loads((HERE.parent / "src/event/samples/chat.message.json").read_text())["data"]
    now, chance = datetime.datetime.now(datetime.UTC), random.Random(1)
    twice = set(chance.sample(range(events), copies))
    messages = []
    for number in range(events):
        sample["eventTime"] = (now + datetime.timedelta(microseconds=number)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        sample["message"]["name"] = f"spaces/AAQAbellOps1/messages/T{number:09}.T{number:09}"
        sample["message"]["createTime"] = sample["eventTime"]
        data = base64.b64encode(json.dumps(sample).encode()).decode()
        messages.append((number, data))
        if number in twice:
            messages.append((number + chance.randrange(1, 1000), data))
    messages.sort()
    return [{"messages": [{"data": it} for _, it in messages[at : at + 500]]} for at in range(0, len(messages), 500)]


def rest(method, host, path, body):
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"http://{host}/v1/{path}", json.dumps(body).encode(), headers, method=method)
    urllib.request.urlopen(request, timeout=60).close()


def alter_system(*changes):
    psql(POSTGRES, *(f"ALTER SYSTEM {change}" for change in changes), "SELECT pg_reload_conf()")


def psql(url, *statements):
    words = [word for it in statements for word in ("-c", it)]
    return subprocess.run([PSQL, "-qAtX", url, *words], check=True, capture_output=True, text=True).stdout.strip()


PSQL = pathlib.Path(subprocess.check_output([HERE / "servers/postgres.sh", "find"], text=True).strip()) / "psql"

if __name__ == "__main__":
    sys.exit(main())
