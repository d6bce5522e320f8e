{{/* What the daemon would refuse at its start, refused before. See _validate.tpl. */}}

{{/* Durations, as docs/CONFIGURATION.md limits them. Whole numbers are limited by values.schema.json. */}}
{{- define "bellhop.problems.ranges" -}}
{{- $limits := list
  (list "pubsub" "lease_extension" "10s" "10m")
  (list "pubsub" "silence" "10s" "1h")
  (list "worker" "drain_timeout" "1s" "1day")
  (list "claims" "lease" "5s" "10m")
  (list "claims" "retention" "3days 10m" "10years")
  (list "retry" "min_backoff" "100ms" "1h")
  (list "retry" "max_backoff" "100ms" "1day")
  (list "handler" "timeout" "100ms" "6h")
  (list "handler" "connect_timeout" "100ms" "30s")
  (list "quarantine" "retention" "1h" "10years") -}}
{{- range $limits -}}
{{- $given := dig (index . 0) (index . 1) "auto" $.Values.config -}}
{{- if ne $given "auto" -}}
{{- include "bellhop.outside" (list (printf "config.%s.%s" (index . 0) (index . 1)) $given (index . 2) (index . 3)) -}}
{{- end -}}
{{- end -}}
{{- range $index, $rule := .Values.config.rule -}}
{{- if hasKey $rule "timeout" -}}
{{- include "bellhop.outside" (list (printf "config.rule[%d].timeout" $index) $rule.timeout "100ms" "6h") -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (list "key" value least most) */}}
{{- define "bellhop.outside" -}}
{{- $value := include "bellhop.milliseconds" (index . 1) | int64 -}}
{{- if or (lt $value (include "bellhop.milliseconds" (index . 2) | int64)) (gt $value (include "bellhop.milliseconds" (index . 3) | int64)) -}}
{{- printf "%s %s must be a duration from %s to %s\n" (index . 0) (index . 1) (index . 2) (index . 3) -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.problems.config" -}}
{{- $most := dig "pubsub" "max_outstanding_messages" 0 .Values.config | int64 -}}
{{- $slots := .Values.config.worker.concurrency | int64 -}}
{{- $parking := dig "worker" "parking" 0 .Values.config | int64 -}}
{{- $streams := dig "pubsub" "streams" 1 .Values.config | int64 -}}
{{- if gt $most 0 -}}
{{- if gt (add $slots $parking) $most -}}
{{- printf "config.worker.concurrency %d and config.worker.parking %d are together more than config.pubsub.max_outstanding_messages %d: set that to 0 to have it computed\n" $slots $parking $most -}}
{{- end -}}
{{- if lt $most (mul 2 $streams) -}}
{{- printf "config.pubsub.max_outstanding_messages %d is divided over %d streams, at least 2 each: set it to 0 to have it computed\n" $most $streams -}}
{{- end -}}
{{- end -}}
{{- $least := dig "retry" "min_backoff" "10s" .Values.config -}}
{{- $longest := dig "retry" "max_backoff" "600s" .Values.config -}}
{{- if gt (include "bellhop.milliseconds" $least | int64) (include "bellhop.milliseconds" $longest | int64) -}}
{{- printf "config.retry.min_backoff %s is longer than config.retry.max_backoff %s\n" $least $longest -}}
{{- end -}}
{{- if and (eq .Values.config.handler.kind "exec") (not (dig "handler" "command" (list) .Values.config)) -}}
{{- printf "config.handler.command is needed by config.handler.kind=exec: the program and its arguments\n" -}}
{{- end -}}
{{- if and (eq .Values.config.handler.kind "http") (dig "handler" "audience" "" .Values.config) (ne .Values.config.handler.auth "google_id_token") -}}
{{- printf "config.handler.audience is only used with config.handler.auth=google_id_token\n" -}}
{{- end -}}
{{- $named := regexFind "^projects/[^/]+" .Values.config.pubsub.subscription | trimPrefix "projects/" -}}
{{- if and $named .Values.config.pubsub.project (ne $named .Values.config.pubsub.project) -}}
{{- printf "config.pubsub.project is %s, but the subscription is in %s: give one of them\n" .Values.config.pubsub.project $named -}}
{{- end -}}
{{- end -}}
