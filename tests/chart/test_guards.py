"""Values that contradict each other are refused with a message that helps; their nearest neighbours pass."""

from __future__ import annotations

import pytest

import helm
from scenarios import hpa, merge, minimal, scenario, single

ECHO = {"handler": {"kind": "echo"}}
BACKLOG = "pubsub.googleapis.com|subscription|num_undelivered_messages"


def external(name: str, kind: str) -> dict:
    amount = {"value": "5"} if kind == "Value" else {"averageValue": "5"}
    return {"type": "External", "external": {"metric": {"name": name}, "target": {"type": kind, **amount}}}


def floor(name: str = "office", replicas: int = 5) -> dict:
    return {"name": name, "schedule": "0 8 * * *", "end": "0 18 * * *", "minReplicas": replicas}


def without_secret(values: dict) -> dict:
    return {key: value for key, value in values.items() if key != "postgres"}


LOOPBACK = {"handler": {"url": "http://localhost:9000/events"}}
STRICT_RULE = {"rule": [{"match": {"command": "/restart"}, "on_unknown": "quarantine"}]}
OWN_MAP = {"existingConfigMap": "own", "terminationGracePeriodSeconds": 70}
NEIGHBOUR = {"name": "handler", "image": "registry.example/handler:7"}

# number in the list of guards, what is refused, its message, what passes
GUARDS = {
    "1 memory with replicas": (
        single(replicaCount=3),
        "config.store.backend=memory keeps claims inside one process; 3 replicas would handle an event more than once. Use postgres, or 1 replica",
        single(replicaCount=1),
    ),
    "1 sqlite with autoscaling": (
        single("sqlite", autoscaling={"mode": "hpa", "minReplicas": 1, "maxReplicas": 2}),
        "config.store.backend=sqlite keeps claims inside one process; 2 replicas would handle an event more than once. Use postgres, or 1 replica",
        single("sqlite", autoscaling={"mode": "hpa", "minReplicas": 1, "maxReplicas": 1}),
    ),
    "2 memory with a rolling update": (
        single(strategy={"type": "RollingUpdate"}),
        "strategy.type=RollingUpdate runs two pods at once; the memory store needs Recreate",
        single(strategy={"type": "Recreate"}),
    ),
    "2 sqlite with a rolling update": (
        single("sqlite", strategy={"type": "RollingUpdate"}),
        "strategy.type=RollingUpdate runs two pods at once; the sqlite store needs Recreate",
        minimal(strategy={"type": "RollingUpdate"}),
    ),
    "3 postgres without a secret": (
        without_secret(minimal()),
        "config.store.backend=postgres needs postgres.existingSecret: the name of a Secret that holds the database URL (the chart never takes passwords)",
        merge(without_secret(minimal()), {"config": {"store": {"url_file": "/run/secrets/url"}}}),
    ),
    "4 grace below the drain": (
        minimal(terminationGracePeriodSeconds=69),
        "terminationGracePeriodSeconds 69 is below preStop 0 + drain 65 + 5 = 70: SIGKILL would cut handlers",
        minimal(terminationGracePeriodSeconds=70),
    ),
    "4 grace below the drain of a rule": (
        minimal(terminationGracePeriodSeconds=309, config={"rule": [{"match": {}, "timeout": "5m"}]}),
        "terminationGracePeriodSeconds 309 is below preStop 0 + drain 305 + 5 = 310: SIGKILL would cut handlers",
        minimal(terminationGracePeriodSeconds=310, config={"rule": [{"match": {}, "timeout": "5m"}]}),
    ),
    "4 grace below the drain given": (
        minimal(terminationGracePeriodSeconds=124, config={"worker": {"drain_timeout": "2m"}}),
        "terminationGracePeriodSeconds 124 is below preStop 0 + drain 120 + 5 = 125: SIGKILL would cut handlers",
        minimal(terminationGracePeriodSeconds=125, config={"worker": {"drain_timeout": "2m"}}),
    ),
    "4 grace without preStop": (
        minimal(terminationGracePeriodSeconds=70, lifecycle={"preStop": {"sleep": {"seconds": 10}}}),
        "terminationGracePeriodSeconds 70 is below preStop 10 + drain 65 + 5 = 80: SIGKILL would cut handlers",
        minimal(terminationGracePeriodSeconds=80, lifecycle={"preStop": {"sleep": {"seconds": 10}}}),
    ),
    "4 preStop of unknown length": (
        minimal(lifecycle={"preStop": {"exec": {"command": ["/wait"]}}}),
        "lifecycle.preStop takes a time the chart does not know: give terminationGracePeriodSeconds (hook + drain 65 + 5)",
        minimal(terminationGracePeriodSeconds=90, lifecycle={"preStop": {"exec": {"command": ["/wait"]}}}),
    ),
    "4 drain that cuts": (
        minimal(config={"worker": {"drain_timeout": "59s"}}),
        "config.worker.drain_timeout 59s is shorter than the longest handler timeout (60 s): use auto, or allow the cut with config.worker.drain_may_cut=true",
        minimal(config={"worker": {"drain_timeout": "59s", "drain_may_cut": True}}),
    ),
    "5 grace longer than autoscalers wait": (
        minimal(config={"handler": {"timeout": "591s"}}),
        "a grace period of 601 s is more than the 600 s cluster autoscalers wait on scale-down: set acknowledgeLongGrace=true, and consider the pod annotation cluster-autoscaler.kubernetes.io/safe-to-evict=false",
        minimal(config={"handler": {"timeout": "590s"}}),
    ),
    "5 long grace acknowledged": (
        minimal(terminationGracePeriodSeconds=601),
        "a grace period of 601 s is more than the 600 s cluster autoscalers wait on scale-down: set acknowledgeLongGrace=true, and consider the pod annotation cluster-autoscaler.kubernetes.io/safe-to-evict=false",
        minimal(terminationGracePeriodSeconds=601, acknowledgeLongGrace=True),
    ),
    "6 autoscaling without a project": (
        hpa(config={"pubsub": {"project": ""}}),
        "autoscaling.mode=hpa needs config.pubsub.subscription and config.pubsub.project",
        hpa(),
    ),
    "6 autoscaling without a subscription": (
        merge(scenario("keda"), {"config": {"pubsub": {"subscription": ""}}}),
        "autoscaling.mode=keda needs config.pubsub.subscription and config.pubsub.project",
        scenario("keda"),
    ),
    "6 no subscription at all": (
        minimal(config={"pubsub": {"subscription": ""}}),
        "config.pubsub.subscription is needed: the id of the app's subscription",
        minimal(),
    ),
    "6 no project": (
        minimal(config={"pubsub": {"project": ""}}),
        "config.pubsub.project is needed: the project of the subscription",
        minimal(config={"pubsub": {"project": "", "subscription": "projects/my-project/subscriptions/chat-events"}}),
    ),
    "7 full subscription name": (
        hpa(config={"pubsub": {"subscription": "projects/p/subscriptions/chat-events"}}),
        'config.pubsub.subscription "projects/p/subscriptions/chat-events" can not select the metric: the HPA\'s label selector needs the short id, of [A-Za-z0-9._-] and at most 63 characters',
        hpa(config={"pubsub": {"subscription": "chat-events"}}),
    ),
    "7 subscription longer than a label": (
        hpa(config={"pubsub": {"subscription": "s" * 64}}),
        f'config.pubsub.subscription "{"s" * 64}" can not select the metric: the HPA\'s label selector needs the short id, of [A-Za-z0-9._-] and at most 63 characters',
        hpa(config={"pubsub": {"subscription": "s" * 63}}),
    ),
    "7 subscription with other characters": (
        hpa(config={"pubsub": {"subscription": "chat+events"}}),
        'config.pubsub.subscription "chat+events" can not select the metric: the HPA\'s label selector needs the short id, of [A-Za-z0-9._-] and at most 63 characters',
        minimal(config={"pubsub": {"subscription": "chat+events"}}),
    ),
    "8 min above max": (
        hpa(autoscaling={"minReplicas": 11}),
        "autoscaling.minReplicas 11 is above autoscaling.maxReplicas 10",
        hpa(autoscaling={"minReplicas": 10}),
    ),
    "8 zero without the gate": (
        hpa(autoscaling={"minReplicas": 0}),
        "autoscaling.minReplicas 0 needs Kubernetes 1.37 (beta), autoscaling.mode=keda, or allowAlphaScaleToZero=true where the feature gate is on",
        hpa(autoscaling={"minReplicas": 0, "allowAlphaScaleToZero": True}),
    ),
    "8 zero without a metric": (
        merge(scenario("hpa-prometheus"), {"autoscaling": {"minReplicas": 0, "allowAlphaScaleToZero": True}}),
        "autoscaling.minReplicas 0 with metricSource=prometheusAdapter would never scale up again: without pods there is no metric",
        scenario("hpa-prometheus"),
    ),
    "9 target above the concurrency": (
        hpa(autoscaling={"target": 16}),
        "autoscaling.target 16 is above config.worker.concurrency 8: each message waits up to (16/8 - 1) x 60s = 60 s and replicas oscillate. Lower it, or set autoscaling.acknowledgeQueueing=true",
        hpa(autoscaling={"target": 8}),
    ),
    "9 queueing acknowledged": (
        hpa(autoscaling={"target": 9}, config={"handler": {"timeout": "30s"}}),
        "autoscaling.target 9 is above config.worker.concurrency 8: each message waits up to (9/8 - 1) x 30s = 4 s and replicas oscillate. Lower it, or set autoscaling.acknowledgeQueueing=true",
        hpa(autoscaling={"target": 9, "acknowledgeQueueing": True}),
    ),
    "10 target of zero": (
        hpa(autoscaling={"target": 0}),
        "autoscaling.target 0 must be above 0: outstanding messages per pod, or empty for 0.8 x concurrency",
        hpa(autoscaling={"target": 1}),
    ),
    "10 custom metric of type Value": (
        merge(scenario("hpa-custom"), {"autoscaling": {"metrics": [external("own", "Value")]}}),
        "autoscaling.metrics: own has target type Value, which multiplies by the pods there are and runs away; use AverageValue",
        merge(scenario("hpa-custom"), {"autoscaling": {"metrics": [external("own", "AverageValue")]}}),
    ),
    "10 extra backlog metric of type Value": (
        hpa(autoscaling={"extraMetrics": [external(BACKLOG, "Value")]}),
        f"autoscaling.extraMetrics: {BACKLOG} has target type Value, which multiplies by the pods there are and runs away; use AverageValue",
        hpa(autoscaling={"extraMetrics": [external("oldest-age", "Value")]}),
    ),
    "10 target nobody reads": (
        merge(scenario("hpa-prometheus"), {"autoscaling": {"target": 6}}),
        "autoscaling.target is for the backlog metric; autoscaling.metricSource=prometheusAdapter does not use it",
        scenario("hpa-prometheus"),
    ),
    "11 replicaCount under autoscaling": (
        hpa(replicaCount=4),
        "replicaCount 4 is ignored with autoscaling.mode=hpa: use autoscaling.minReplicas",
        hpa(autoscaling={"minReplicas": 4}),
    ),
    "12 both budgets": (
        minimal(replicaCount=3, podDisruptionBudget={"minAvailable": 1}),
        'podDisruptionBudget has both minAvailable and maxUnavailable: set one of them to ""',
        minimal(replicaCount=3, podDisruptionBudget={"minAvailable": 1, "maxUnavailable": ""}),
    ),
    "12 neither budget": (
        minimal(podDisruptionBudget={"maxUnavailable": ""}),
        "podDisruptionBudget has neither minAvailable nor maxUnavailable",
        minimal(podDisruptionBudget={"maxUnavailable": "", "enabled": False}),
    ),
    "12 budget that blocks": (
        hpa(podDisruptionBudget={"minAvailable": 2, "maxUnavailable": ""}),
        "podDisruptionBudget.minAvailable 2 of 2 pods would block every node drain; use maxUnavailable",
        hpa(podDisruptionBudget={"minAvailable": 1, "maxUnavailable": ""}),
    ),
    "12 percentage that blocks": (
        minimal(replicaCount=3, podDisruptionBudget={"minAvailable": "67%", "maxUnavailable": ""}),
        "podDisruptionBudget.minAvailable 67% of 3 pods would block every node drain; use maxUnavailable",
        minimal(replicaCount=3, podDisruptionBudget={"minAvailable": "66%", "maxUnavailable": ""}),
    ),
    "12 floors lower the least": (
        hpa(autoscaling={"floors": [floor()]}, podDisruptionBudget={"minAvailable": 1, "maxUnavailable": ""}),
        "podDisruptionBudget.minAvailable 1 of 1 pods would block every node drain; use maxUnavailable",
        hpa(autoscaling={"floors": [floor()]}),
    ),
    "12 nothing may be away": (
        minimal(podDisruptionBudget={"maxUnavailable": 0}),
        "podDisruptionBudget.maxUnavailable 0 would block every node drain; use 1",
        minimal(podDisruptionBudget={"maxUnavailable": 1}),
    ),
    "13 connections over the budget": (
        hpa(autoscaling={"maxReplicas": 15}),
        "19 pods (surge included) x config.store.max_connections 5 + 10 = 105 connections exceed postgres.maxConnectionsBudget 100",
        hpa(autoscaling={"maxReplicas": 14}),
    ),
    "14 retention too short": (
        minimal(config={"claims": {"retention": "33d"}}, pubsub={"messageRetention": "31d"}),
        "config.claims.retention 33d is below pubsub.messageRetention 31d + 3d: a retained message could come back after its claim was forgotten",
        minimal(config={"claims": {"retention": "34d"}}, pubsub={"messageRetention": "31d"}),
    ),
    "15 two floors of one name": (
        hpa(autoscaling={"floors": [floor(), floor()]}),
        "autoscaling.floors has two floors named office",
        hpa(autoscaling={"floors": [floor(), floor("evening")]}),
    ),
    "15 floor above max": (
        hpa(autoscaling={"floors": [floor(replicas=11)]}),
        "autoscaling.floors: office has minReplicas 11, above autoscaling.maxReplicas 10",
        hpa(autoscaling={"floors": [floor(replicas=10)]}),
    ),
    "15 floor below min": (
        hpa(autoscaling={"floors": [floor(replicas=1)]}),
        "autoscaling.floors: office has minReplicas 1, below autoscaling.minReplicas 2: it would lower, not raise",
        hpa(autoscaling={"floors": [floor(replicas=2)]}),
    ),
    "15 floors without scaling": (
        minimal(autoscaling={"floors": [floor()]}),
        "autoscaling.floors need autoscaling.mode=hpa or keda",
        hpa(autoscaling={"floors": [floor()]}),
    ),
    "15 keda with metrics of the hpa": (
        merge(scenario("keda"), {"autoscaling": {"extraMetrics": [external("own", "AverageValue")]}}),
        "autoscaling.extraMetrics is for autoscaling.mode=hpa only; with keda it has no effect",
        hpa(autoscaling={"extraMetrics": [external("own", "AverageValue")]}),
    ),
    "15 keda with a source of the hpa": (
        merge(scenario("keda"), {"autoscaling": {"metricSource": "prometheusAdapter"}}),
        "autoscaling.metricSource is for autoscaling.mode=hpa only; with keda it has no effect",
        scenario("keda"),
    ),
    "15 keda with the gate of the hpa": (
        merge(scenario("keda"), {"autoscaling": {"allowAlphaScaleToZero": True}}),
        "autoscaling.allowAlphaScaleToZero is for autoscaling.mode=hpa only; with keda it has no effect",
        scenario("keda"),
    ),
    "15 custom without metrics": (
        hpa(autoscaling={"metricSource": "custom"}),
        "autoscaling.metricSource=custom needs autoscaling.metrics",
        scenario("hpa-custom"),
    ),
    "15 metrics without custom": (
        hpa(autoscaling={"metrics": [external("own", "AverageValue")]}),
        "autoscaling.metrics is only used with autoscaling.metricSource=custom; use extraMetrics beside stackdriver",
        scenario("hpa-custom"),
    ),
    "15 scraped twice": (
        minimal(metrics={"podMonitor": {"enabled": True}, "gmpPodMonitoring": {"enabled": True}}),
        "metrics.podMonitor and metrics.gmpPodMonitoring are both enabled: every series would be there twice",
        minimal(metrics={"podMonitor": {"enabled": True}}),
    ),
    "15 variable of the chart": (
        minimal(extraEnv=[{"name": "DATABASE_URL", "value": "postgres://x"}]),
        "extraEnv sets DATABASE_URL, which the chart sets or computes with: give it in values instead",
        merge(without_secret(minimal()), {"extraEnv": [{"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}]}),
    ),
    "16 latest without digest": (
        minimal(image={"tag": "latest"}),
        "image.tag=latest without image.digest: nobody could say what runs",
        minimal(image={"tag": "latest", "digest": "sha256:" + "0" * 64}),
    ),
    "16 root allowed": (
        minimal(podSecurityContext={"runAsNonRoot": False}),
        "podSecurityContext.runAsNonRoot=false: bellhop does not need root",
        minimal(podSecurityContext={"runAsNonRoot": True}),
    ),
    "16 root allowed in the container": (
        minimal(securityContext={"runAsNonRoot": False}),
        "securityContext.runAsNonRoot=false: bellhop does not need root",
        minimal(securityContext={"runAsNonRoot": True}),
    ),
    "16 root not ruled out": (
        minimal(podSecurityContext={"runAsNonRoot": None}, securityContext={"runAsNonRoot": None}),
        "runAsNonRoot is neither in podSecurityContext nor in securityContext: bellhop does not need root",
        minimal(podSecurityContext={"runAsNonRoot": None}),
    ),
    "16 user 0": (
        minimal(podSecurityContext={"runAsUser": 0}),
        "podSecurityContext.runAsUser=0 is root: bellhop does not need it",
        minimal(podSecurityContext={"runAsUser": 1}),
    ),
    "16 no image": (
        minimal(image={"repository": ""}),
        "image.repository is needed: where your image of bellhop is",
        minimal(image={"repository": "bellhop"}),
    ),
    "17 autoscaling.enabled": (
        minimal(autoscaling={"enabled": True}),
        "autoscaling.enabled is not a value of this chart: use autoscaling.mode (none, hpa or keda), see UPGRADING.md",
        hpa(),
    ),
    "17 pool size": (
        minimal(postgres={"poolSize": 4}),
        "postgres.poolSize is not a value of this chart: use config.store.max_connections, see UPGRADING.md",
        minimal(config={"store": {"max_connections": 4}}),
    ),
    "17 concurrency at the top": (
        minimal(config={"concurrency": 4}),
        "config.concurrency is not a value of this chart: use config.worker.concurrency, see UPGRADING.md",
        minimal(config={"worker": {"concurrency": 4}}),
    ),
    "17 subscription at the top": (
        minimal(config={"subscription": "chat"}),
        "config.subscription is not a value of this chart: use config.pubsub.subscription, see UPGRADING.md",
        minimal(),
    ),
    "17 project at the top": (
        minimal(config={"projectId": "chat"}),
        "config.projectId is not a value of this chart: use config.pubsub.project, see UPGRADING.md",
        minimal(),
    ),
    "17 CPU percentage": (
        minimal(autoscaling={"targetCPUUtilizationPercentage": 80}),
        "autoscaling.targetCPUUtilizationPercentage is not a value of this chart: use autoscaling.target (outstanding messages per pod), see UPGRADING.md",
        minimal(),
    ),
    "17 service monitor": (
        minimal(metrics={"serviceMonitor": {"enabled": True}}),
        "metrics.serviceMonitor is not a value of this chart: use metrics.podMonitor, see UPGRADING.md",
        minimal(metrics={"podMonitor": {"enabled": True}}),
    ),
    "19 grace from a hidden configuration": (
        minimal(existingConfigMap="own"),
        "existingConfigMap hides the timeouts from the chart: give terminationGracePeriodSeconds explicitly",
        minimal(**OWN_MAP),
    ),
    "19 target from a hidden configuration": (
        hpa(**OWN_MAP),
        "existingConfigMap hides the concurrency from the chart: give autoscaling.target explicitly",
        hpa(**OWN_MAP, autoscaling={"target": 6}),
    ),
    "20 nothing on loopback": (
        minimal(config=LOOPBACK),
        "config.handler.url http://localhost:9000/events is on loopback, but nothing listens there in this pod: put the handler into extraContainers, or give its Service's URL",
        minimal(config=LOOPBACK, extraContainers=[NEIGHBOUR]),
    ),
    "20 nothing on an address of loopback": (
        minimal(config={"handler": {"url": "http://127.8.8.8/events"}}),
        "config.handler.url http://127.8.8.8/events is on loopback, but nothing listens there in this pod: put the handler into extraContainers, or give its Service's URL",
        minimal(config={"handler": {"url": "http://127.8.8.8/events"}}, initContainers=[{**NEIGHBOUR, "restartPolicy": "Always"}]),
    ),
    "20 an init container that ends": (
        minimal(config=LOOPBACK, initContainers=[NEIGHBOUR]),
        "config.handler.url http://localhost:9000/events is on loopback, but nothing listens there in this pod: put the handler into extraContainers, or give its Service's URL",
        minimal(config={"handler": {"url": "http://localhost.example/events"}}),
    ),
    "20 no URL": (
        minimal(config={"handler": {"url": ""}}),
        "config.handler.url is needed by config.handler.kind=http: where events are posted",
        minimal(config={"handler": {"url": "", "kind": "echo"}}),
    ),
    "21 strict rule on memory": (
        single(config=merge(ECHO, STRICT_RULE)),
        "on_unknown: quarantine can not be kept by config.store.backend=memory, which forgets what began. Use postgres or sqlite, or on_unknown: rerun in all rules",
        single("sqlite", config=merge(ECHO, STRICT_RULE)),
    ),
    "21 strict handler on memory": (
        single(config={"handler": {"on_unknown": "quarantine"}}),
        "on_unknown: quarantine can not be kept by config.store.backend=memory, which forgets what began. Use postgres or sqlite, or on_unknown: rerun in all rules",
        single(config={"handler": {"on_unknown": "rerun"}}),
    ),
    "22 nobody proves who calls": (
        minimal(handlerAuth={"signingSecret": {"existingSecret": ""}}),
        "config.handler.url http://handler.apps.svc:9000/events is off loopback and nothing proves who calls: anyone in the cluster could call the handler. Set handlerAuth.signingSecret.existingSecret, config.handler.auth, or config.handler.unauthenticated=true",
        minimal(handlerAuth={"signingSecret": {"existingSecret": ""}}, config={"handler": {"unauthenticated": True}}),
    ),
    "22 bearer without a token": (
        minimal(config={"handler": {"auth": "bearer"}}),
        "config.handler.auth=bearer needs handlerAuth.bearerToken.existingSecret",
        minimal(config={"handler": {"auth": "bearer"}}, handlerAuth={"bearerToken": {"existingSecret": "x"}}),
    ),
    "22 token nobody uses": (
        minimal(handlerAuth={"bearerToken": {"existingSecret": "x"}}),
        "handlerAuth.bearerToken.existingSecret is only used with config.handler.auth=bearer",
        minimal(),
    ),
    "23 ports differ": (
        minimal(containerPort=9090),
        "config.server.listen 0.0.0.0:8080 and containerPort 9090 differ: probes would miss",
        minimal(containerPort=9090, config={"server": {"listen": "0.0.0.0:9090"}}),
    ),
    "23 listens to itself": (
        minimal(config={"server": {"listen": "127.0.0.1:8080"}}),
        "config.server.listen 127.0.0.1:8080 is on loopback: probes would miss",
        minimal(config={"server": {"listen": "[::]:8080"}}),
    ),
    "a rollout that can not move": (
        minimal(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
        "strategy.rollingUpdate has maxSurge 0 and maxUnavailable 0: no rollout could ever move",
        minimal(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
    ),
}

# Where the cluster decides: what is refused, its message, what passes on the same bare cluster.
CLUSTER_GUARDS = {
    "keda": (
        merge(scenario("keda"), {"autoscaling": {"keda": {"renderMode": "failIfMissing"}}}),
        "autoscaling.mode=keda needs keda.sh/v1alpha1, which is not installed; where the renderer can not know, set autoscaling.keda.renderMode=alwaysRender",
        scenario("keda"),
    ),
    "podMonitor": (
        minimal(metrics={"podMonitor": {"enabled": True, "renderMode": "failIfMissing"}}),
        "metrics.podMonitor needs monitoring.coreos.com/v1, which is not installed (renderMode=failIfMissing)",
        minimal(metrics={"podMonitor": {"enabled": True, "renderMode": "skipIfMissing"}}),
    ),
    "gmpPodMonitoring": (
        minimal(metrics={"gmpPodMonitoring": {"enabled": True, "renderMode": "failIfMissing"}}),
        "metrics.gmpPodMonitoring needs monitoring.googleapis.com/v1, which is not installed (renderMode=failIfMissing)",
        minimal(metrics={"gmpPodMonitoring": {"enabled": True, "renderMode": "alwaysRender"}}),
    ),
    "prometheusRule": (
        minimal(metrics={"prometheusRule": {"enabled": True, "renderMode": "failIfMissing"}}),
        "metrics.prometheusRule needs monitoring.coreos.com/v1, which is not installed (renderMode=failIfMissing)",
        minimal(metrics={"prometheusRule": {"enabled": False, "renderMode": "failIfMissing"}}),
    ),
}


def refusal(values: dict, **cluster) -> list[str]:
    with pytest.raises(helm.Refused) as caught:
        helm.render(values, **cluster)
    assert "These values can not be deployed" in str(caught.value)
    return [line.removeprefix("  - ") for line in str(caught.value).splitlines() if line.startswith("  - ")]


@pytest.mark.parametrize("name", GUARDS)
def test_a_contradiction_is_refused_in_these_words(name):
    values, message, _ = GUARDS[name]

    assert message in refusal(values)


@pytest.mark.parametrize("name", GUARDS)
def test_its_neighbour_passes(name):
    *_, neighbour = GUARDS[name]

    assert helm.render(neighbour).objects


@pytest.mark.parametrize("name", CLUSTER_GUARDS)
def test_a_missing_api_is_refused_in_these_words(name):
    values, message, _ = CLUSTER_GUARDS[name]

    assert refusal(values, crds=False) == [message]
    assert helm.render(values, crds=True).objects


@pytest.mark.parametrize("name", CLUSTER_GUARDS)
def test_a_missing_api_that_is_expected_passes(name):
    *_, neighbour = CLUSTER_GUARDS[name]

    assert helm.render(neighbour, crds=False).objects


def test_scaling_to_zero_passes_where_kubernetes_can_do_it():
    values = hpa(autoscaling={"minReplicas": 0})

    assert refusal(values, kube="1.36.3")
    assert helm.render(values, kube="1.37.0").one("HorizontalPodAutoscaler")["spec"]["minReplicas"] == 0


def test_one_mistake_gives_one_message():
    lines = {name: refusal(values) for name, (values, _, _) in GUARDS.items()}

    # These two lack a value that is needed without autoscaling, too.
    assert {name for name, found in lines.items() if len(found) > 1} == {
        "6 autoscaling without a project",
        "6 autoscaling without a subscription",
    }


def test_all_mistakes_are_told_together():
    values = without_secret(hpa(replicaCount=4, image={"tag": "latest"}, config={"handler": {"url": ""}}))

    assert len(refusal(values)) == 4


def test_every_guard_of_the_list_is_here():
    # 18 is among those the cluster decides.
    numbers = {int(name.split()[0]) for name in GUARDS if name[0].isdigit()} | {18}

    assert numbers == set(range(1, 24))
