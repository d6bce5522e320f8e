"""What is rendered fits the real daemon: its configuration parser, its command line, its ports and its endpoints."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
import yaml

import helm
import pods
from daemon import IN_KUBERNETES, environment, run, worker, written
from guards_config import OF_THE_DAEMON
from scenarios import merge, minimal, names, scenario

RENDERS_ONE = [name for name in names() if "existingConfigMap" not in scenario(name)]


@pytest.mark.parametrize("name", RENDERS_ONE)
def test_the_rendered_configuration_is_valid(name, bellhop, tmp_path):
    rendered = helm.render(scenario(name))
    variables = environment(worker(rendered)) | {"BELLHOP_CONFIG": str(written(rendered, tmp_path))}

    answer = run(bellhop, ["config", "validate"], variables)

    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_an_invalid_one_would_be_noticed(bellhop, tmp_path):
    rendered = helm.render(minimal())
    path = written(rendered, tmp_path)
    path.write_text(path.read_text().replace("concurrency:", "concurency:"))

    answer = run(bellhop, ["config", "validate", "--config", str(path)], environment(worker(rendered)))

    assert answer.returncode == 2


def judged(bellhop, tmp_path, config: dict) -> int:
    """The daemon's answer to a configuration, whatever the chart would say to it."""
    rendered = helm.render(minimal())
    path = written(rendered, tmp_path)
    path.write_text(yaml.safe_dump(merge(yaml.safe_load(path.read_text()), config)))
    return run(bellhop, ["config", "validate", "--config", str(path)], environment(worker(rendered))).returncode


@pytest.mark.parametrize("name", OF_THE_DAEMON)
def test_the_daemon_would_refuse_that_as_well(name, bellhop, tmp_path):
    refused, _, neighbour = OF_THE_DAEMON[name]

    assert judged(bellhop, tmp_path, refused["config"]) == 2
    assert judged(bellhop, tmp_path, neighbour["config"]) == 0


# Texts with a shape: what the schema refuses, and its neighbour.
SHAPES = [
    ("pubsub.project", "my project", "example.com:my-project"),
    ("pubsub.subscription", "projects/my-project/topics/chat", "projects/my-project/subscriptions/chat"),
    ("pubsub.endpoint", "ftp://emulator", "emulator:8085"),
    ("pubsub.endpoint", "http://emulator:8085/path", "http://emulator:8085/"),
    ("pubsub.max_outstanding_bytes", "many", "1.5 MiB"),
    ("handler.url", "http://user:password@handler/", "http://handler/?user=a@b"),
    ("handler.url", "http://handler/#part", "http://handler/part"),
    ("handler.url", "handler:9000", "http://[fd00::1]:9000"),
    ("handler.proxy", "socks5://proxy:1080", "http://proxy:3128"),
    ("server.listen", "localhost:8080", "[::]:8080"),
    ("rule", [{"match": {"type": []}}], [{"match": {"type": ["MESSAGE"]}}]),
]


@pytest.mark.parametrize(("key", "wrong", "right"), SHAPES, ids=str)
def test_the_schema_refuses_what_the_daemon_does(key, wrong, right, bellhop, tmp_path):
    def nested(value) -> dict:
        for part in reversed(key.split(".")):
            value = {part: value}
        return value

    with pytest.raises(helm.Refused, match="specifications of the schema"):
        helm.render(minimal(config=nested(wrong)))
    assert judged(bellhop, tmp_path, {**nested(wrong)}) == 2
    assert helm.render(minimal(config=nested(right))).objects
    assert judged(bellhop, tmp_path, nested(right)) == 0


# "a duration from "5s" to "10m"", as docs/CONFIGURATION.md says it and the daemon's own tests hold it to.
LIMITS = re.findall(
    r'^\| `([a-z_.\[\]]+)` \|[^|]*\|[^|]*a duration from "([^"]+)" to "([^"]+)"',
    (helm.ROOT / "docs" / "CONFIGURATION.md").read_text(),
    re.MULTILINE,
)
# What must be given beside a limit, so that nothing else is wrong.
BESIDE = {
    "acknowledgeLongGrace": True,
    "pubsub": {"messageRetention": "10m"},
    "config": {"worker": {"drain_may_cut": True}},
}


def with_limit(key: str, time: str) -> dict:
    section, name = key.split(".")
    values = minimal(**BESIDE)
    if key == "retry.min_backoff":
        values = merge(values, {"config": {"retry": {"max_backoff": "1day"}}})
    if key == "retry.max_backoff":
        values = merge(values, {"config": {"retry": {"min_backoff": "100ms"}}})
    if section == "rule[]":
        return merge(values, {"config": {"rule": [{"match": {}, name: time}]}})
    return merge(values, {"config": {section: {name: time}}})


def test_there_are_limits():
    assert len(LIMITS) >= 11


@pytest.mark.parametrize(("key", "least", "most"), LIMITS)
def test_durations_are_limited_as_the_daemon_limits_them(key, least, most):
    shown = key.replace("rule[]", "rule[0]")

    for time in (least, most):
        assert helm.render(with_limit(key, time)).objects
    for time in (f"{most} 1s", "50ms" if least == "100ms" else least.replace("10m", "9m") if "days" in least else "900ms"):
        with pytest.raises(helm.Refused) as caught:
            helm.render(with_limit(key, time))
        assert f"config.{shown} {time} must be a duration from {least} to {most}" in str(caught.value)


@pytest.mark.parametrize("name", RENDERS_ONE)
def test_the_grace_period_covers_what_the_daemon_computes(name, bellhop, tmp_path):
    rendered = helm.render(scenario(name))
    variables = environment(worker(rendered)) | {"BELLHOP_CONFIG": str(written(rendered, tmp_path))}

    computed = json.loads(run(bellhop, ["config", "show", "--output", "json"], variables).stdout)["computed"]

    grace = pods.spec_of(rendered.one("Deployment"))["terminationGracePeriodSeconds"]
    stop = scenario(name).get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    if "terminationGracePeriodSeconds" in scenario(name):
        assert grace >= stop + computed["drain_timeout_seconds"] + 5
    else:
        assert grace == stop + computed["drain_timeout_seconds"] + 5


# Every unit, in an amount that a handler may take.
TIMEOUTS = [
    *(f"200000000{unit}" for unit in ("ns", "nsec", "nanos")),
    *(f"200000{unit}" for unit in ("us", "µs", "usec")),
    *(f"1500{unit}" for unit in ("ms", "msec", "millis")),
    *(f"90 {unit}" for unit in ("s", "sec", "secs", "second", "seconds")),
    *(f"3{unit}" for unit in ("m", "min", "mins", "minute", "minutes")),
    *(f"2{unit}" for unit in ("h", "hr", "hrs", "hour", "hours")),
    *(f"0.01{unit}" for unit in ("d", "day", "days")),
    *(f"0.01{unit}" for unit in ("w", "wk", "wks", "week", "weeks")),
    *(f"0.0078125{unit}" for unit in ("M", "month", "months")),
    "1m 30s", "1m30s", "1h 2m 3s 4ms", "1.5m",
]


@pytest.mark.parametrize("timeout", TIMEOUTS)
def test_durations_mean_the_same_to_both(timeout, bellhop, tmp_path):
    rendered = helm.render(minimal(config={"handler": {"timeout": timeout}}, acknowledgeLongGrace=True))
    variables = environment(worker(rendered)) | {"BELLHOP_CONFIG": str(written(rendered, tmp_path))}

    answer = run(bellhop, ["config", "show", "--output", "json"], variables)
    assert answer.returncode == 0, answer.stderr
    computed = json.loads(answer.stdout)["computed"]

    grace = pods.spec_of(rendered.one("Deployment"))["terminationGracePeriodSeconds"]
    assert 0 <= grace - (computed["drain_timeout_seconds"] + 5) < 1


def test_every_unit_of_the_schema_was_tried():
    schema = json.loads((helm.CHART / "values.schema.json").read_text())
    units = re.search(r"\(([a-zA-Zµ|]+)\)", schema["definitions"]["duration"]["pattern"])[1]

    assert set(units.split("|")) == {re.sub(r"[0-9. ]", "", timeout) for timeout in TIMEOUTS[:-4]} | set(YEARS)


# Too long for a handler, but not for a retention.
YEARS = ("y", "yr", "yrs", "year", "years")


@pytest.mark.parametrize("unit", YEARS)
def test_a_year_has_as_many_days_as_the_daemon_says(unit, bellhop, tmp_path):
    def retained(days: str) -> helm.Rendered:
        return helm.render(minimal(config={"claims": {"retention": f"1{unit}"}}, pubsub={"messageRetention": days}))

    rendered = retained("362.25d")
    variables = environment(worker(rendered)) | {"BELLHOP_CONFIG": str(written(rendered, tmp_path))}
    answer = run(bellhop, ["config", "show", "--output", "json", "--set", "claims.retention=365days 6h"], variables)

    assert json.loads(answer.stdout)["values"]["claims"]["retention"] == "1year"
    with pytest.raises(helm.Refused):
        retained("362.26d")


def test_variables_stand_in_for_a_hidden_configuration(bellhop, tmp_path):
    rendered = helm.render(scenario("existing-configmap"))
    container = worker(rendered)
    path = tmp_path / "bellhop.toml"
    path.write_text('[pubsub]\nproject = "p"\nsubscription = "chat"\n[handler]\nkind = "echo"\n')
    variables = environment(container)
    assert variables["BELLHOP_CONFIG"] == "/etc/bellhop/bellhop.toml"

    shown = json.loads(run(bellhop, ["config", "show", "--output", "json"], variables | {"BELLHOP_CONFIG": str(path)}).stdout)

    store = shown["values"]["store"]
    assert (store["backend"], store["replicas"]) == ("postgres", 18)


def test_the_keys_of_the_schema_are_the_keys_of_the_daemon(bellhop):
    rendered = helm.render(minimal(config={"handler": {"kind": "echo"}}))
    variables = environment(worker(rendered)) | {"BELLHOP__PUBSUB__PROJECT": "p", "BELLHOP__PUBSUB__SUBSCRIPTION": "chat"}
    del variables["BELLHOP_CONFIG"]
    answer = run(bellhop, ["config", "show", "--output", "json", "--set", "handler.kind=echo"], variables)
    values = json.loads(answer.stdout)["values"]
    of_daemon = {f"{section}.{key}" for section, keys in values.items() if isinstance(keys, dict) for key in keys}

    schema = json.loads((helm.CHART / "values.schema.json").read_text())["properties"]["config"]["properties"]
    of_schema = {
        f"{section}.{key}"
        for section, node in schema.items()
        if "properties" in node
        for key in node["properties"]
    }
    secret = {"store.url", "store.migrate_url", "handler.bearer_token", "handler.signing_secret"}
    computed = {"store.replicas", "store.single_process"}
    assert of_schema == (of_daemon | {f"{key}_file" for key in secret}) - secret - computed


@pytest.mark.parametrize("name", ["minimal", "google", "prometheus", "everything-extra"])
def test_migrations_start_with_nothing_but_the_secret(name, bellhop):
    rendered = helm.render(scenario(name))
    job = next(found for found in rendered.all("Job"))
    container = pods.spec_of(job)["containers"][0]

    answer = run(bellhop, container["args"], environment(container))

    # Nothing listens at the secret's address: it was tried, so the command line and the environment are right.
    assert answer.returncode == 6, answer.stderr


def test_the_init_container_starts_as_well(bellhop):
    spec = pods.spec_of(helm.render(scenario("sidecar")).one("Deployment"))
    container = next(found for found in spec["initContainers"] if found["name"] == "migrate")

    assert run(bellhop, container["args"], environment(container)).returncode == 6


def test_the_workers_arguments_are_known(bellhop):
    container = worker(helm.render(scenario("everything-extra")))

    answer = run(bellhop, [*container["args"], "--help"], environment(container))

    assert answer.returncode == 0, answer.stderr


def test_the_arguments_of_helm_test_are_known(bellhop):
    pod = helm.render(minimal()).one("Pod")
    service = next(found for found in helm.render(minimal()).all("Service"))
    variable = re.search(r"\$\((\w+)\)", pod["spec"]["containers"][0]["args"][-1])[1]
    assert variable == service["metadata"]["name"].upper().replace("-", "_") + "_SERVICE_HOST"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = free.getsockname()[1]
    arguments = [text.replace(f"$({variable})", "127.0.0.1").replace("8080", str(closed)) for text in pod["spec"]["containers"][0]["args"]]

    # Nothing listens: 6, not 2.
    assert run(bellhop, arguments, IN_KUBERNETES).returncode == 6


def get(url: str) -> int | None:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def test_the_daemon_answers_where_probes_and_monitors_ask(bellhop, tmp_path):
    """The rendered configuration, started as it stands; only the address is one of this machine's free ports."""
    values = scenario("prometheus")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    values["containerPort"] = port
    values["config"]["server"] = {"listen": f"0.0.0.0:{port}"}
    # A subscription that can not be reached is waited for.
    values["config"]["pubsub"]["endpoint"] = "http://127.0.0.1:9"
    rendered = helm.render(values)
    container = worker(rendered)
    ports = {found["name"]: found["containerPort"] for found in container["ports"]}
    monitor = rendered.one("PodMonitor")["spec"]["podMetricsEndpoints"][0]
    asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {"http"} == {probe["port"] for probe in asked.values()} | {monitor["port"]}
    base = f"http://127.0.0.1:{ports['http']}"
    variables = environment(container) | {"BELLHOP_CONFIG": str(written(rendered, tmp_path))}

    daemon = subprocess.Popen([bellhop, *container["args"]], env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        said = next((line for line in daemon.stderr if "Listening on" in line), None)
        found = {path: get(base + path) for path in [*(probe["path"] for probe in asked.values()), monitor["path"], "/nothing"]}
    finally:
        daemon.terminate()
        grace = pods.spec_of(rendered.one("Deployment"))["terminationGracePeriodSeconds"]
        errors = daemon.communicate(timeout=grace)[1]

    assert said, errors
    assert daemon.returncode == 0, errors
    assert found == {"/healthz/started": 200, "/healthz/live": 200, "/healthz/ready": 503, "/metrics": 200, "/nothing": 404}, errors
