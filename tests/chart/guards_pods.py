"""Guards of stores, handlers and pods: number in the list of guards, what is refused, its message, what passes."""

from __future__ import annotations

from guards_scaling import floor
from scenarios import hpa, merge, minimal, scenario, single

ECHO = {"handler": {"kind": "echo"}}
LOOPBACK = {"handler": {"url": "http://localhost:9000/events"}}
STRICT_RULE = {"rule": [{"match": {"command": "/restart"}, "on_unknown": "quarantine"}]}
OWN_MAP = {"existingConfigMap": "own", "terminationGracePeriodSeconds": 70}
NEIGHBOUR = {"name": "handler", "image": "registry.example/handler:7"}


def without_secret(values: dict) -> dict:
    return {key: value for key, value in values.items() if key != "postgres"}


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
    "14 retention too short": (
        minimal(config={"claims": {"retention": "33d"}}, pubsub={"messageRetention": "31d"}),
        "config.claims.retention 33d is below pubsub.messageRetention 31d + 3d: a retained message could come back after its claim was forgotten",
        minimal(config={"claims": {"retention": "34d"}}, pubsub={"messageRetention": "31d"}),
    ),
    "15 scraped twice": (
        minimal(metrics={"podMonitor": {"enabled": True}, "gmpPodMonitoring": {"enabled": True}}),
        "metrics.podMonitor and metrics.gmpPodMonitoring are both enabled: every series would be there twice",
        minimal(metrics={"podMonitor": {"enabled": True}}),
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
        "config.handler.url http://localhost:9000/events is on loopback, but nothing listens there in this pod: put the handler into initContainers with restartPolicy Always (a sidecar that stops after bellhop) or into extraContainers, or give its Service's URL",
        minimal(config=LOOPBACK, extraContainers=[NEIGHBOUR]),
    ),
    "20 nothing on an address of loopback": (
        minimal(config={"handler": {"url": "http://127.8.8.8/events"}}),
        "config.handler.url http://127.8.8.8/events is on loopback, but nothing listens there in this pod: put the handler into initContainers with restartPolicy Always (a sidecar that stops after bellhop) or into extraContainers, or give its Service's URL",
        minimal(config={"handler": {"url": "http://127.8.8.8/events"}}, initContainers=[{**NEIGHBOUR, "restartPolicy": "Always"}]),
    ),
    "20 an init container that ends": (
        minimal(config=LOOPBACK, initContainers=[NEIGHBOUR]),
        "config.handler.url http://localhost:9000/events is on loopback, but nothing listens there in this pod: put the handler into initContainers with restartPolicy Always (a sidecar that stops after bellhop) or into extraContainers, or give its Service's URL",
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
    "a rollout that counts as failed while pods drain": (
        minimal(progressDeadlineSeconds=75, minReadySeconds=5),
        "progressDeadlineSeconds 75 is not above grace 70 + minReadySeconds 5: a rollout would count as failed while pods drain",
        minimal(progressDeadlineSeconds=76, minReadySeconds=5),
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
        minimal(metrics={"prometheusRule": {"enabled": True, "renderMode": "failIfMissing", "runbookBaseUrl": "https://runbooks.example"}}),
        "metrics.prometheusRule needs monitoring.coreos.com/v1, which is not installed (renderMode=failIfMissing)",
        minimal(metrics={"prometheusRule": {"enabled": False, "renderMode": "failIfMissing"}}),
    ),
}
