{{/* Numbers that follow from the values. */}}

{{/* The longest any handler may take, in milliseconds. */}}
{{- define "bellhop.longestHandlerMilliseconds" -}}
{{- $longest := include "bellhop.milliseconds" .Values.config.handler.timeout | int64 -}}
{{- range .Values.config.rule -}}
{{- with .timeout -}}
{{- $longest = max $longest (include "bellhop.milliseconds" . | int64) -}}
{{- end -}}
{{- end -}}
{{- $longest -}}
{{- end -}}

{{/* From SIGTERM to the abort of running handlers, in whole seconds. */}}
{{- define "bellhop.drainSeconds" -}}
{{- if eq .Values.config.worker.drain_timeout "auto" -}}
{{- divf (include "bellhop.longestHandlerMilliseconds" . | float64) 1000.0 | ceil | int64 | add 5 -}}
{{- else -}}
{{- include "bellhop.seconds" .Values.config.worker.drain_timeout -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.preStopSeconds" -}}
{{- dig "preStop" "sleep" "seconds" 0 .Values.lifecycle | int64 -}}
{{- end -}}

{{/* The least grace period: preStop, drain, and 5 seconds to confirm answers and exit. */}}
{{- define "bellhop.neededGraceSeconds" -}}
{{- add (include "bellhop.preStopSeconds" . | int64) (include "bellhop.drainSeconds" . | int64) 5 -}}
{{- end -}}

{{- define "bellhop.graceSeconds" -}}
{{- if kindIs "string" .Values.terminationGracePeriodSeconds -}}
{{- include "bellhop.neededGraceSeconds" . -}}
{{- else -}}
{{- .Values.terminationGracePeriodSeconds | int64 -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.progressDeadlineSeconds" -}}
{{- if kindIs "string" .Values.progressDeadlineSeconds -}}
{{- max 600 (add (include "bellhop.graceSeconds" . | int64) (int64 .Values.minReadySeconds) 180) -}}
{{- else -}}
{{- .Values.progressDeadlineSeconds | int64 -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.singleProcess" -}}
{{- if has .Values.config.store.backend (list "sqlite" "memory") -}}true{{- end -}}
{{- end -}}

{{- define "bellhop.strategy" -}}
{{- if .Values.strategy.type -}}
{{- .Values.strategy.type -}}
{{- else -}}
{{- ternary "Recreate" "RollingUpdate" (eq (include "bellhop.singleProcess" .) "true") -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.highestReplicas" -}}
{{- if eq .Values.autoscaling.mode "none" -}}
{{- .Values.replicaCount | int64 -}}
{{- else -}}
{{- .Values.autoscaling.maxReplicas | int64 -}}
{{- end -}}
{{- end -}}

{{/* "true" when CronJobs, not Helm, own the HPA's minReplicas. */}}
{{- define "bellhop.floorJobs" -}}
{{- if and (eq .Values.autoscaling.mode "hpa") .Values.autoscaling.floors -}}true{{- end -}}
{{- end -}}

{{- define "bellhop.lowestReplicas" -}}
{{- if eq .Values.autoscaling.mode "none" -}}
{{- .Values.replicaCount | int64 -}}
{{- else if include "bellhop.floorJobs" . -}}
{{- min 1 (.Values.autoscaling.minReplicas | int64) -}}
{{- else -}}
{{- .Values.autoscaling.minReplicas | int64 -}}
{{- end -}}
{{- end -}}

{{/* Pods a rollout may add. Kubernetes rounds maxSurge up. */}}
{{- define "bellhop.surge" -}}
{{- if eq (include "bellhop.strategy" .) "Recreate" -}}
0
{{- else -}}
{{- include "bellhop.share" (list .Values.strategy.rollingUpdate.maxSurge (include "bellhop.highestReplicas" .)) -}}
{{- end -}}
{{- end -}}

{{/* A number, or a percentage of a count rounded up: (list value count). */}}
{{- define "bellhop.share" -}}
{{- $value := index . 0 | toString -}}
{{- if hasSuffix "%" $value -}}
{{- divf (mulf (trimSuffix "%" $value | float64) (index . 1 | float64)) 100.0 | ceil | int64 -}}
{{- else -}}
{{- $value | float64 | int64 -}}
{{- end -}}
{{- end -}}

{{/* Processes that may share the work at once, those of a rollout included (store.replicas). */}}
{{- define "bellhop.processes" -}}
{{- if include "bellhop.singleProcess" . -}}
1
{{- else -}}
{{- max 1 (add (include "bellhop.highestReplicas" . | int64) (include "bellhop.surge" . | int64)) -}}
{{- end -}}
{{- end -}}

{{/* Outstanding messages per pod. The metric counts waiting and running ones, so above the concurrency messages wait. */}}
{{- define "bellhop.target" -}}
{{- if kindIs "string" .Values.autoscaling.target -}}
{{- max 1 (mulf 0.8 (.Values.config.worker.concurrency | float64) | floor | int64) -}}
{{- else -}}
{{- .Values.autoscaling.target | int64 -}}
{{- end -}}
{{- end -}}

{{/* "true" when the HPA or KEDA scales on the subscription's backlog. */}}
{{- define "bellhop.scalesOnBacklog" -}}
{{- if or (eq .Values.autoscaling.mode "keda") (and (eq .Values.autoscaling.mode "hpa") (eq .Values.autoscaling.metricSource "stackdriver")) -}}true{{- end -}}
{{- end -}}

{{/* "true" when the HPA has a metric that is there with no pods, so that it can leave zero. */}}
{{- define "bellhop.seesWithoutPods" -}}
{{- $metrics := .Values.autoscaling.extraMetrics -}}
{{- if eq .Values.autoscaling.metricSource "custom" -}}{{- $metrics = concat $metrics .Values.autoscaling.metrics -}}{{- end -}}
{{- $found := eq .Values.autoscaling.metricSource "stackdriver" -}}
{{- range $metrics -}}
{{- if has (toString .type) (list "External" "Object") -}}{{- $found = true -}}{{- end -}}
{{- end -}}
{{- if $found -}}true{{- end -}}
{{- end -}}
