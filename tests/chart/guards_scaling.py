"""Guards of scaling: number in the list of guards, what is refused, its message, what passes."""

from __future__ import annotations

from scenarios import hpa, merge, minimal, scenario

BACKLOG = "pubsub.googleapis.com|subscription|num_undelivered_messages"
OF_PODS = {"type": "Pods", "pods": {"metric": {"name": "busy"}, "target": {"type": "AverageValue", "averageValue": "800m"}}}


def external(name: str, kind: str) -> dict:
    amount = {"value": "5"} if kind == "Value" else {"averageValue": "5"}
    return {"type": "External", "external": {"metric": {"name": name}, "target": {"type": kind, **amount}}}


def floor(name: str = "office", replicas: int = 5) -> dict:
    return {"name": name, "schedule": "0 8 * * *", "end": "0 18 * * *", "minReplicas": replicas}


GUARDS = {
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
        hpa(config={"pubsub": {"subscription": "projects/my-project/subscriptions/chat-events"}}),
        'config.pubsub.subscription "projects/my-project/subscriptions/chat-events" can not select the metric: the HPA\'s label selector needs the short id, of [A-Za-z0-9._-] and at most 63 characters',
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
        hpa(autoscaling={"minReplicas": 15}),
        "autoscaling.minReplicas 15 is above autoscaling.maxReplicas 14",
        hpa(autoscaling={"minReplicas": 14}),
    ),
    "8 zero without the gate": (
        hpa(autoscaling={"minReplicas": 0}),
        "autoscaling.minReplicas 0 needs Kubernetes 1.37 (beta), autoscaling.mode=keda, or allowAlphaScaleToZero=true where the feature gate is on",
        hpa(autoscaling={"minReplicas": 0, "allowAlphaScaleToZero": True}),
    ),
    "8 zero without a metric": (
        merge(scenario("hpa-prometheus"), {"autoscaling": {"minReplicas": 0, "allowAlphaScaleToZero": True}}),
        "autoscaling.minReplicas 0 with metricSource=prometheusAdapter would never scale up again: without pods there is no metric. Add one of type External or Object",
        merge(scenario("hpa-prometheus"), {"autoscaling": {"minReplicas": 0, "allowAlphaScaleToZero": True, "extraMetrics": [external("own", "AverageValue")]}}),
    ),
    "8 zero with metrics of pods only": (
        merge(scenario("hpa-custom"), {"autoscaling": {"minReplicas": 0, "allowAlphaScaleToZero": True, "metrics": [OF_PODS]}}),
        "autoscaling.minReplicas 0 with metricSource=custom would never scale up again: without pods there is no metric. Add one of type External or Object",
        merge(scenario("hpa-custom"), {"autoscaling": {"minReplicas": 0, "allowAlphaScaleToZero": True}}),
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
    "13 connections over the budget": (
        hpa(autoscaling={"maxReplicas": 15}),
        "19 pods (surge included) x config.store.max_connections 5 + 10 = 105 connections exceed postgres.maxConnectionsBudget 100",
        hpa(autoscaling={"maxReplicas": 14}),
    ),
    "15 two floors of one name": (
        hpa(autoscaling={"floors": [floor(), floor()]}),
        "autoscaling.floors has two floors named office",
        hpa(autoscaling={"floors": [floor(), floor("evening")]}),
    ),
    "15 floor above max": (
        hpa(autoscaling={"floors": [floor(replicas=15)]}),
        "autoscaling.floors: office has minReplicas 15, above autoscaling.maxReplicas 14",
        hpa(autoscaling={"floors": [floor(replicas=14)]}),
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
}
