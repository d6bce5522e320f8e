{{/* Values that contradict each other are refused, all at once. Types, enumerations and ranges are refused by
     values.schema.json before. Each template below writes one problem a line. */}}

{{- define "bellhop.validate" -}}
{{- $found := list -}}
{{- range $part := list "renamed" "config" "ranges" "store" "handler" "rollout" "scaling" "target" "floors" "pods" "security" "variables" "cluster" "metrics" -}}
{{- range splitList "\n" (include (printf "bellhop.problems.%s" $part) $) -}}
{{- with trim . -}}{{- $found = append $found . -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $found -}}
{{- fail (printf "\n\nThese values can not be deployed (%d):\n  - %s\n" (len $found) (join "\n  - " $found)) -}}
{{- end -}}
{{- end -}}

{{/* Keys of other charts, of `helm create`, and of earlier versions. */}}
{{- define "bellhop.problems.renamed" -}}
{{- $renamed := list
  (list "autoscaling.enabled" (hasKey .Values.autoscaling "enabled") "autoscaling.mode (none, hpa or keda)")
  (list "autoscaling.targetCPUUtilizationPercentage" (hasKey .Values.autoscaling "targetCPUUtilizationPercentage") "autoscaling.target (outstanding messages per pod)")
  (list "config.subscription" (hasKey .Values.config "subscription") "config.pubsub.subscription")
  (list "config.projectId" (hasKey .Values.config "projectId") "config.pubsub.project")
  (list "config.concurrency" (hasKey .Values.config "concurrency") "config.worker.concurrency")
  (list "postgres.poolSize" (hasKey .Values.postgres "poolSize") "config.store.max_connections")
  (list "metrics.serviceMonitor" (hasKey .Values.metrics "serviceMonitor") "metrics.podMonitor") -}}
{{- range $renamed -}}
{{- if index . 1 -}}
{{- printf "%s is not a value of this chart: use %s, see UPGRADING.md\n" (index . 0) (index . 2) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.problems.store" -}}
{{- $backend := .Values.config.store.backend -}}
{{- if include "bellhop.singleProcess" . -}}
{{- $highest := include "bellhop.highestReplicas" . | int64 -}}
{{- if gt $highest 1 -}}
{{- printf "config.store.backend=%s keeps claims inside one process; %d replicas would handle an event more than once. Use postgres, or 1 replica\n" $backend $highest -}}
{{- end -}}
{{- if eq .Values.strategy.type "RollingUpdate" -}}
{{- printf "strategy.type=RollingUpdate runs two pods at once; the %s store needs Recreate\n" $backend -}}
{{- end -}}
{{- else -}}
{{- if not (or .Values.postgres.existingSecret .Values.config.store.url_file (include "bellhop.hasEnv" (list . "DATABASE_URL")) (include "bellhop.hasEnv" (list . "BELLHOP__STORE__URL"))) -}}
{{- printf "config.store.backend=%s needs postgres.existingSecret: the name of a Secret that holds the database URL (the chart never takes passwords)\n" $backend -}}
{{- end -}}
{{- $processes := include "bellhop.processes" . | int64 -}}
{{- $wanted := add (mul $processes (int64 .Values.config.store.max_connections)) 10 -}}
{{- $budget := int64 .Values.postgres.maxConnectionsBudget -}}
{{- if and (gt $budget 0) (gt $wanted $budget) -}}
{{- printf "%d pods (surge included) x config.store.max_connections %d + 10 = %d connections exceed postgres.maxConnectionsBudget %d\n" $processes (int64 .Values.config.store.max_connections) $wanted $budget -}}
{{- end -}}
{{- end -}}
{{- if and .Values.persistence.enabled (ne $backend "sqlite") -}}
{{- printf "persistence.enabled is only used with config.store.backend=sqlite, not with %s\n" $backend -}}
{{- end -}}
{{- if and (eq $backend "sqlite") (has (dir .Values.config.store.path | clean) (list "/tmp" "/etc/bellhop")) -}}
{{- printf "config.store.path %s lies where the chart mounts something else: give it a directory of its own, such as /var/lib/bellhop\n" .Values.config.store.path -}}
{{- end -}}
{{- if and (eq $backend "memory") (include "bellhop.isStrict" .) -}}
{{- printf "on_unknown: quarantine can not be kept by config.store.backend=memory, which forgets what began. Use postgres or sqlite, or on_unknown: rerun in all rules\n" -}}
{{- end -}}
{{- $retention := include "bellhop.seconds" .Values.config.claims.retention | int64 -}}
{{- if lt $retention (add (include "bellhop.seconds" .Values.pubsub.messageRetention | int64) 259200) -}}
{{- printf "config.claims.retention %s is below pubsub.messageRetention %s + 3d: a retained message could come back after its claim was forgotten\n" .Values.config.claims.retention .Values.pubsub.messageRetention -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.problems.handler" -}}
{{- if not .Values.image.repository -}}
{{- printf "image.repository is needed: where your image of bellhop is\n" -}}
{{- end -}}
{{- if and (not .Values.config.pubsub.subscription) (not .Values.existingConfigMap) -}}
{{- printf "config.pubsub.subscription is needed: the id of the app's subscription\n" -}}
{{- end -}}
{{- if and (not .Values.config.pubsub.project) (not (contains "/" .Values.config.pubsub.subscription)) (not .Values.existingConfigMap) -}}
{{- printf "config.pubsub.project is needed: the project of the subscription\n" -}}
{{- end -}}
{{- $url := .Values.config.handler.url -}}
{{- if eq .Values.config.handler.kind "http" -}}
{{- if not $url -}}
{{- if not .Values.existingConfigMap -}}
{{- printf "config.handler.url is needed by config.handler.kind=http: where events are posted\n" -}}
{{- end -}}
{{- else if include "bellhop.handlerOnLoopback" . -}}
{{- if not (include "bellhop.hasNeighbour" .) -}}
{{- printf "config.handler.url %s is on loopback, but nothing listens there in this pod: put the handler into initContainers with restartPolicy Always (a sidecar that stops after bellhop) or into extraContainers, or give its Service's URL\n" $url -}}
{{- end -}}
{{- else -}}
{{- $signed := or .Values.handlerAuth.signingSecret.existingSecret .Values.config.handler.signing_secret_file (include "bellhop.hasEnv" (list . "BELLHOP__HANDLER__SIGNING_SECRET")) -}}
{{- if not (or $signed (ne .Values.config.handler.auth "none") .Values.config.handler.unauthenticated) -}}
{{- printf "config.handler.url %s is off loopback and nothing proves who calls: anyone in the cluster could call the handler. Set handlerAuth.signingSecret.existingSecret, config.handler.auth, or config.handler.unauthenticated=true\n" $url -}}
{{- end -}}
{{- end -}}
{{- $bearer := or .Values.handlerAuth.bearerToken.existingSecret .Values.config.handler.bearer_token_file (include "bellhop.hasEnv" (list . "BELLHOP__HANDLER__BEARER_TOKEN")) -}}
{{- if and (eq .Values.config.handler.auth "bearer") (not $bearer) -}}
{{- printf "config.handler.auth=bearer needs handlerAuth.bearerToken.existingSecret\n" -}}
{{- else if and (ne .Values.config.handler.auth "bearer") .Values.handlerAuth.bearerToken.existingSecret -}}
{{- printf "handlerAuth.bearerToken.existingSecret is only used with config.handler.auth=bearer\n" -}}
{{- end -}}
{{- end -}}
{{- if not .Values.existingConfigMap -}}
{{- $port := regexFind "[0-9]+$" .Values.config.server.listen | int64 -}}
{{- if ne $port (int64 .Values.containerPort) -}}
{{- printf "config.server.listen %s and containerPort %d differ: probes would miss\n" .Values.config.server.listen (int64 .Values.containerPort) -}}
{{- end -}}
{{- if or (hasPrefix "127." .Values.config.server.listen) (hasPrefix "[::1]" .Values.config.server.listen) -}}
{{- printf "config.server.listen %s is on loopback: probes would miss\n" .Values.config.server.listen -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.problems.rollout" -}}
{{- $computed := kindIs "string" .Values.terminationGracePeriodSeconds -}}
{{- $grace := include "bellhop.graceSeconds" . | int64 -}}
{{- $stop := include "bellhop.preStopSeconds" . | int64 -}}
{{- $drain := include "bellhop.drainSeconds" . | int64 -}}
{{- $needed := include "bellhop.neededGraceSeconds" . | int64 -}}
{{- if and (not $computed) (lt $grace $needed) -}}
{{- printf "terminationGracePeriodSeconds %d is below preStop %d + drain %d + 5 = %d: SIGKILL would cut handlers\n" $grace $stop $drain $needed -}}
{{- end -}}
{{- $preStop := dig "preStop" (dict) .Values.lifecycle -}}
{{- if and $computed (or (hasKey $preStop "exec") (hasKey $preStop "httpGet") (hasKey $preStop "tcpSocket")) -}}
{{- printf "lifecycle.preStop takes a time the chart does not know: give terminationGracePeriodSeconds (hook + drain %d + 5)\n" $drain -}}
{{- end -}}
{{- $longest := divf (include "bellhop.longestHandlerMilliseconds" . | float64) 1000.0 | ceil | int64 -}}
{{- if and (lt $drain $longest) (not .Values.config.worker.drain_may_cut) -}}
{{- printf "config.worker.drain_timeout %s is shorter than the longest handler timeout (%d s): use auto, or allow the cut with config.worker.drain_may_cut=true\n" .Values.config.worker.drain_timeout $longest -}}
{{- end -}}
{{- if and (gt $grace 600) (not .Values.acknowledgeLongGrace) -}}
{{- printf "a grace period of %d s is more than the 600 s cluster autoscalers wait on scale-down: set acknowledgeLongGrace=true, and consider the pod annotation cluster-autoscaler.kubernetes.io/safe-to-evict=false\n" $grace -}}
{{- end -}}
{{- $deadline := include "bellhop.progressDeadlineSeconds" . | int64 -}}
{{- $least := add $grace (int64 .Values.minReadySeconds) -}}
{{- if le $deadline $least -}}
{{- printf "progressDeadlineSeconds %d is not above grace %d + minReadySeconds %d: a rollout would count as failed while pods drain\n" $deadline $grace (int64 .Values.minReadySeconds) -}}
{{- end -}}
{{- if .Values.existingConfigMap -}}
{{- if $computed -}}
{{- printf "existingConfigMap hides the timeouts from the chart: give terminationGracePeriodSeconds explicitly\n" -}}
{{- end -}}
{{- if and (include "bellhop.scalesOnBacklog" .) (kindIs "string" .Values.autoscaling.target) -}}
{{- printf "existingConfigMap hides the concurrency from the chart: give autoscaling.target explicitly\n" -}}
{{- end -}}
{{- end -}}
{{- if and (eq (include "bellhop.strategy" .) "RollingUpdate") (eq (include "bellhop.share" (list .Values.strategy.rollingUpdate.maxSurge 100)) "0") (has (toString .Values.strategy.rollingUpdate.maxUnavailable) (list "0" "0%")) -}}
{{- printf "strategy.rollingUpdate has maxSurge 0 and maxUnavailable 0: no rollout could ever move\n" -}}
{{- end -}}
{{- end -}}
