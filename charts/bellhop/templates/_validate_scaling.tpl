{{/* Problems of scaling. See _validate.tpl. */}}

{{- define "bellhop.problems.scaling" -}}
{{- if ne .Values.autoscaling.mode "none" -}}
{{- if include "bellhop.scalesOnBacklog" . -}}
{{- if or (not .Values.config.pubsub.subscription) (not .Values.config.pubsub.project) -}}
{{- printf "autoscaling.mode=%s needs config.pubsub.subscription and config.pubsub.project\n" .Values.autoscaling.mode -}}
{{- end -}}
{{- $subscription := .Values.config.pubsub.subscription -}}
{{- if and $subscription (or (contains "/" $subscription) (and (eq .Values.autoscaling.mode "hpa") (not (regexMatch "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$" $subscription)))) -}}
{{- printf "config.pubsub.subscription %q can not select the metric: the HPA's label selector needs the short id, of [A-Za-z0-9._-] and at most 63 characters\n" $subscription -}}
{{- end -}}
{{- $project := .Values.config.pubsub.project -}}
{{- if and $project (eq .Values.autoscaling.mode "hpa") (not (regexMatch "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$" $project)) -}}
{{- printf "config.pubsub.project %q can not select the metric: the HPA's label selector takes [A-Za-z0-9._-] and at most 63 characters; use autoscaling.mode=keda\n" $project -}}
{{- end -}}
{{- end -}}
{{- $min := int64 .Values.autoscaling.minReplicas -}}
{{- $max := int64 .Values.autoscaling.maxReplicas -}}
{{- if gt $min $max -}}
{{- printf "autoscaling.minReplicas %d is above autoscaling.maxReplicas %d\n" $min $max -}}
{{- end -}}
{{- if and (eq .Values.autoscaling.mode "hpa") (eq $min 0) -}}
{{- if not (include "bellhop.seesWithoutPods" .) -}}
{{- printf "autoscaling.minReplicas 0 with metricSource=%s would never scale up again: without pods there is no metric. Add one of type External or Object\n" .Values.autoscaling.metricSource -}}
{{- else if and (semverCompare "<1.37.0-0" .Capabilities.KubeVersion.Version) (not .Values.autoscaling.allowAlphaScaleToZero) -}}
{{- printf "autoscaling.minReplicas 0 needs Kubernetes 1.37 (beta), autoscaling.mode=keda, or allowAlphaScaleToZero=true where the feature gate is on\n" -}}
{{- end -}}
{{- end -}}
{{- if ne (int64 .Values.replicaCount) 1 -}}
{{- printf "replicaCount %d is ignored with autoscaling.mode=%s: use autoscaling.minReplicas\n" (int64 .Values.replicaCount) .Values.autoscaling.mode -}}
{{- end -}}
{{- if and (eq .Values.autoscaling.mode "hpa") (eq .Values.autoscaling.metricSource "custom") (not .Values.autoscaling.metrics) -}}
{{- printf "autoscaling.metricSource=custom needs autoscaling.metrics\n" -}}
{{- end -}}
{{- if and .Values.autoscaling.metrics (ne .Values.autoscaling.metricSource "custom") -}}
{{- printf "autoscaling.metrics is only used with autoscaling.metricSource=custom; use extraMetrics beside %s\n" .Values.autoscaling.metricSource -}}
{{- end -}}
{{- if eq .Values.autoscaling.mode "keda" -}}
{{- $hpaOnly := list -}}
{{- if ne .Values.autoscaling.metricSource "stackdriver" -}}{{- $hpaOnly = append $hpaOnly "metricSource" -}}{{- end -}}
{{- if .Values.autoscaling.metrics -}}{{- $hpaOnly = append $hpaOnly "metrics" -}}{{- end -}}
{{- if .Values.autoscaling.extraMetrics -}}{{- $hpaOnly = append $hpaOnly "extraMetrics" -}}{{- end -}}
{{- if .Values.autoscaling.allowAlphaScaleToZero -}}{{- $hpaOnly = append $hpaOnly "allowAlphaScaleToZero" -}}{{- end -}}
{{- range $hpaOnly -}}
{{- printf "autoscaling.%s is for autoscaling.mode=hpa only; with keda it has no effect\n" . -}}
{{- end -}}
{{- if not (include "bellhop.hasApi" (dict "root" . "api" "keda.sh/v1alpha1" "mode" .Values.autoscaling.keda.renderMode)) -}}
{{- printf "autoscaling.mode=keda needs keda.sh/v1alpha1, which is not installed; where the renderer can not know, set autoscaling.keda.renderMode=alwaysRender\n" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.problems.target" -}}
{{- if ne .Values.autoscaling.mode "none" -}}
{{- $given := not (kindIs "string" .Values.autoscaling.target) -}}
{{- $target := include "bellhop.target" . | int64 -}}
{{- $slots := int64 .Values.config.worker.concurrency -}}
{{- if and $given (le $target 0) -}}
{{- printf "autoscaling.target %d must be above 0: outstanding messages per pod, or empty for 0.8 x concurrency\n" $target -}}
{{- end -}}
{{- if and $given (not (include "bellhop.scalesOnBacklog" .)) -}}
{{- printf "autoscaling.target is for the backlog metric; autoscaling.metricSource=%s does not use it\n" .Values.autoscaling.metricSource -}}
{{- end -}}
{{- if and $given (gt $target $slots) (not .Values.autoscaling.acknowledgeQueueing) -}}
{{- $wait := mulf (subf (divf (float64 $target) (float64 $slots)) 1.0) (divf (include "bellhop.milliseconds" .Values.config.handler.timeout | float64) 1000.0) -}}
{{- printf "autoscaling.target %d is above config.worker.concurrency %d: each message waits up to (%d/%d - 1) x %s = %.0f s and replicas oscillate. Lower it, or set autoscaling.acknowledgeQueueing=true\n" $target $slots $target $slots .Values.config.handler.timeout $wait -}}
{{- end -}}
{{- range .Values.autoscaling.metrics -}}
{{- if and (eq (toString .type) "External") (eq (dig "external" "target" "type" "" .) "Value") -}}
{{- printf "autoscaling.metrics: %s has target type Value, which multiplies by the pods there are and runs away; use AverageValue\n" (dig "external" "metric" "name" "an External metric" .) -}}
{{- end -}}
{{- end -}}
{{- range .Values.autoscaling.extraMetrics -}}
{{- $name := dig "external" "metric" "name" "" . -}}
{{- if and (eq (toString .type) "External") (regexMatch "undelivered|backlog|outstanding" $name) (eq (dig "external" "target" "type" "" .) "Value") -}}
{{- printf "autoscaling.extraMetrics: %s has target type Value, which multiplies by the pods there are and runs away; use AverageValue\n" $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.problems.floors" -}}
{{- if include "bellhop.floorJobs" . -}}
{{- $image := .Values.autoscaling.floorJob.image -}}
{{- if or (not $image.repository) (and (not $image.digest) (has $image.tag (list "" "latest"))) -}}
{{- printf "autoscaling.floorJob.image needs a repository, and a tag other than latest or a digest\n" -}}
{{- end -}}
{{- end -}}
{{- if .Values.autoscaling.floors -}}
{{- if eq .Values.autoscaling.mode "none" -}}
{{- printf "autoscaling.floors need autoscaling.mode=hpa or keda\n" -}}
{{- end -}}
{{- $names := list -}}
{{- range .Values.autoscaling.floors -}}
{{- if has .name $names -}}
{{- printf "autoscaling.floors has two floors named %s\n" .name -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- if gt (int64 .minReplicas) (int64 $.Values.autoscaling.maxReplicas) -}}
{{- printf "autoscaling.floors: %s has minReplicas %d, above autoscaling.maxReplicas %d\n" .name (int64 .minReplicas) (int64 $.Values.autoscaling.maxReplicas) -}}
{{- end -}}
{{- if lt (int64 .minReplicas) (int64 $.Values.autoscaling.minReplicas) -}}
{{- printf "autoscaling.floors: %s has minReplicas %d, below autoscaling.minReplicas %d: it would lower, not raise\n" .name (int64 .minReplicas) (int64 $.Values.autoscaling.minReplicas) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
