"""Guards of the daemon's own configuration, of what is added to its container, and of clusters that are too old."""

from __future__ import annotations

from guards_pods import without_secret
from scenarios import hpa, merge, minimal, scenario, single

SECRET = {"valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}
SIDECAR = {"name": "handler", "image": "registry.example/handler:7", "restartPolicy": "Always"}


def config(**sections) -> dict:
    return minimal(config=sections)


# What the daemon refuses as well (test_daemon.py shows that it does).
OF_THE_DAEMON = {
    "concurrency above what is held": (
        config(pubsub={"max_outstanding_messages": 15}),
        "config.worker.concurrency 16 and config.worker.parking 0 are together more than config.pubsub.max_outstanding_messages 15: set that to 0 to have it computed",
        config(pubsub={"max_outstanding_messages": 16}),
    ),
    "parking above what is held": (
        config(pubsub={"max_outstanding_messages": 20}, worker={"parking": 5}),
        "config.worker.concurrency 16 and config.worker.parking 5 are together more than config.pubsub.max_outstanding_messages 20: set that to 0 to have it computed",
        config(pubsub={"max_outstanding_messages": 20}, worker={"parking": 4}),
    ),
    "streams without work": (
        config(pubsub={"max_outstanding_messages": 16, "streams": 9}),
        "config.pubsub.max_outstanding_messages 16 is divided over 9 streams, at least 2 each: set it to 0 to have it computed",
        config(pubsub={"max_outstanding_messages": 16, "streams": 8}),
    ),
    "delays the wrong way round": (
        config(retry={"min_backoff": "11m"}),
        "config.retry.min_backoff 11m is longer than config.retry.max_backoff 600s",
        config(retry={"min_backoff": "10m"}),
    ),
    "exec without a program": (
        config(handler={"kind": "exec"}),
        "config.handler.command is needed by config.handler.kind=exec: the program and its arguments",
        config(handler={"kind": "exec", "command": ["/bin/true"]}),
    ),
    "audience for nobody": (
        config(handler={"audience": "https://handler.example"}),
        "config.handler.audience is only used with config.handler.auth=google_id_token",
        config(handler={"audience": "https://handler.example", "auth": "google_id_token"}),
    ),
    "subscription of another project": (
        config(pubsub={"subscription": "projects/other/subscriptions/chat-events"}),
        "config.pubsub.project is my-project, but the subscription is in other: give one of them",
        config(pubsub={"subscription": "projects/my-project/subscriptions/chat-events"}),
    ),
}

GUARDS = {
    **OF_THE_DAEMON,
    "3 the other name of the URL": (
        without_secret(minimal(extraEnv=[{"name": "BELLHOP__STORE__MIGRATE_URL", **SECRET}])),
        "config.store.backend=postgres needs postgres.existingSecret: the name of a Secret that holds the database URL (the chart never takes passwords)",
        without_secret(minimal(extraEnv=[{"name": "BELLHOP__STORE__URL", **SECRET}])),
    ),
    "15 variable of the chart": (
        minimal(extraEnv=[{"name": "DATABASE_URL", **SECRET}]),
        "extraEnv sets DATABASE_URL, which the chart sets or computes with: give it in values instead",
        without_secret(minimal(extraEnv=[{"name": "DATABASE_URL", **SECRET}])),
    ),
    "15 variable that outranks the secret": (
        minimal(extraEnv=[{"name": "BELLHOP__STORE__URL", **SECRET}]),
        "extraEnv sets BELLHOP__STORE__URL, which the chart sets or computes with: give it in values instead",
        minimal(extraEnv=[{"name": "BELLHOP__STORE__MIGRATE_URL", **SECRET}]),
    ),
    "15 variable that the chart computes with": (
        minimal(extraEnv=[{"name": "BELLHOP__RULE", "value": "[]"}]),
        "extraEnv sets BELLHOP__RULE, which the chart sets or computes with: give it in values instead",
        minimal(extraEnv=[{"name": "BELLHOP__LOG__LEVEL", "value": "debug"}]),
    ),
    "3 password in a variable": (
        without_secret(minimal(extraEnv=[{"name": "DATABASE_URL", "value": "postgres://u:p@h/d"}])),
        "extraEnv holds DATABASE_URL itself, readable by everyone who reads the release: refer to a Secret with valueFrom.secretKeyRef",
        without_secret(minimal(extraEnv=[{"name": "DATABASE_URL", **SECRET}])),
    ),
    "15 flag that outranks the configuration": (
        minimal(extraArgs=["--drain-timeout=10m"]),
        "extraArgs has --drain-timeout, which goes past what the chart checks and computes: use config",
        minimal(extraArgs=["--log-level=debug", "--no-wait"]),
    ),
    "15 key in a flag": (
        minimal(extraArgs=["--set", "store.replicas=1"]),
        "extraArgs has --set, which goes past what the chart checks and computes: use config",
        minimal(extraArgs=["--log-format", "text"]),
    ),
    "15 another file in a flag": (
        minimal(extraArgs=["-c/etc/other.yaml"]),
        "extraArgs has -c, which goes past what the chart checks and computes: use config",
        minimal(extraArgs=["--log-level", "info,sqlx=warn"]),
    ),
    "15 scraped for longer than the interval": (
        minimal(metrics={"podMonitor": {"interval": "15s", "scrapeTimeout": "16s"}}),
        "metrics.podMonitor.scrapeTimeout 16s is longer than its interval 15s: Prometheus refuses that",
        minimal(metrics={"podMonitor": {"interval": "15s", "scrapeTimeout": "15s"}}),
    ),
    "alerts without runbooks": (
        minimal(metrics={"prometheusRule": {"enabled": True}}),
        "metrics.prometheusRule.runbookBaseUrl is needed: where those who are woken can read docs/runbooks, such as https://github.com/ORGANISATION/bellhop/blob/main/docs/runbooks",
        minimal(metrics={"prometheusRule": {"enabled": True, "runbookBaseUrl": "https://runbooks.example"}}),
    ),
    "16 privileged": (
        minimal(securityContext={"privileged": True}),
        "securityContext.privileged=true: bellhop does not need it, and the restricted pod security standard refuses it",
        minimal(securityContext={"privileged": False}),
    ),
    "16 escalation": (
        minimal(securityContext={"allowPrivilegeEscalation": True}),
        "securityContext.allowPrivilegeEscalation=true: bellhop does not need it, and the restricted pod security standard refuses it",
        minimal(securityContext={"allowPrivilegeEscalation": False}),
    ),
    "16 kubectl of any version": (
        merge(scenario("hpa-floors"), {"autoscaling": {"floorJob": {"image": {"tag": "latest", "digest": ""}}}}),
        "autoscaling.floorJob.image needs a repository, and a tag other than latest or a digest",
        merge(scenario("hpa-floors"), {"autoscaling": {"floorJob": {"image": {"tag": "latest"}}}}),
    ),
    "16 kubectl without a version": (
        merge(scenario("hpa-floors"), {"autoscaling": {"floorJob": {"image": {"tag": "", "digest": ""}}}}),
        "autoscaling.floorJob.image needs a repository, and a tag other than latest or a digest",
        merge(scenario("hpa-floors"), {"autoscaling": {"floorJob": {"image": {"tag": "v1.33.4", "digest": ""}}}}),
    ),
    "7 project that is no label": (
        hpa(config={"pubsub": {"project": "example.com:my-project"}}),
        'config.pubsub.project "example.com:my-project" can not select the metric: the HPA\'s label selector takes [A-Za-z0-9._-] and at most 63 characters; use autoscaling.mode=keda',
        merge(scenario("keda"), {"config": {"pubsub": {"project": "example.com:my-project"}}}),
    ),
    "a volume for a store that needs none": (
        minimal(persistence={"enabled": True}),
        "persistence.enabled is only used with config.store.backend=sqlite, not with postgres",
        single("sqlite", persistence={"enabled": True}),
    ),
    "a file where something else is mounted": (
        single("sqlite", config={"store": {"path": "/tmp/bellhop.db"}}),
        "config.store.path /tmp/bellhop.db lies where the chart mounts something else: give it a directory of its own, such as /var/lib/bellhop",
        single("sqlite", config={"store": {"path": "/tmp/store/bellhop.db"}}),
    ),
}

# Where the version of Kubernetes decides: what is refused, its message, on which, and the first on which it passes.
VERSION_GUARDS = {
    "8 zero with an hpa": (
        hpa(autoscaling={"minReplicas": 0}),
        "autoscaling.minReplicas 0 needs Kubernetes 1.37 (beta), autoscaling.mode=keda, or allowAlphaScaleToZero=true where the feature gate is on",
        "1.36.3", "1.37.0",
    ),
    "20 sidecar": (
        minimal(config={"handler": {"url": "http://localhost:9000/"}}, initContainers=[SIDECAR]),
        "initContainers: handler has restartPolicy Always, which needs Kubernetes 1.29: v1.28.9-gke.1 would wait for its end for ever",
        "1.28.9-gke.1", "1.29.0",
    ),
    "sidecar of a migration": (
        minimal(migrations={"initContainers": [SIDECAR]}),
        "migrations.initContainers: handler has restartPolicy Always, which needs Kubernetes 1.29: v1.28.0 would wait for its end for ever",
        "1.28.0", "1.29.0",
    ),
    "sleep before the end": (
        minimal(lifecycle={"preStop": {"sleep": {"seconds": 5}}}),
        "lifecycle.preStop.sleep needs Kubernetes 1.30; this is v1.29.4",
        "1.29.4", "1.30.0",
    ),
    "tolerance": (
        hpa(autoscaling={"behavior": {"scaleUp": {"tolerance": "0.05"}}}),
        "autoscaling.behavior.scaleUp.tolerance needs Kubernetes 1.35 (beta), or 1.33 with its feature gate; this is v1.32.1",
        "1.32.1", "1.33.0",
    ),
}
