{{/* Alerts. files/rules.yaml is a plain Prometheus rule file, so that promtool can read it as it stands. Written for a
     release called bellhop in a namespace called bellhop; the names are replaced here. */}}

{{- define "bellhop.job" -}}
{{- ternary (include "bellhop.fullname" .) (include "bellhop.name" .) .Values.metrics.gmpPodMonitoring.enabled -}}
{{- end -}}

{{/* A number at the end of an expression, after a comparison: what `threshold` replaces. */}}
{{- define "bellhop.thresholdPattern" -}}
(==|!=|>=|<=|>|<)\s*-?[0-9]+(\.[0-9]+)?\s*$
{{- end -}}

{{- define "bellhop.ruleFiles" -}}
{{- $groups := list -}}
{{- range $path, $_ := .Files.Glob "files/rules*.yaml" -}}
{{- $groups = concat $groups (($.Files.Get $path | fromYaml).groups | default list) -}}
{{- end -}}
{{- toYaml (dict "groups" $groups) -}}
{{- end -}}

{{- define "bellhop.ruleGroups" -}}
{{- $root := . -}}
{{- $full := include "bellhop.fullname" . -}}
{{- $groups := list -}}
{{- range $group := (include "bellhop.ruleFiles" . | fromYaml).groups -}}
{{- $rules := list -}}
{{- range $rule := $group.rules -}}
{{- $set := dict -}}
{{- if $rule.alert -}}
{{- $set = get $root.Values.metrics.prometheusRule.alerts $rule.alert | default dict -}}
{{- end -}}
{{- if ne (toString $set.enabled) "false" -}}
{{- $expr := $rule.expr | toString -}}
{{- $expr = $expr | replace "job=\"bellhop\"" (printf "job=\"%s\"" (include "bellhop.job" $root)) -}}
{{- $expr = $expr | replace "namespace=\"bellhop\"" (printf "namespace=\"%s\"" $root.Release.Namespace) -}}
{{- $expr = $expr | replace "deployment=\"bellhop\"" (printf "deployment=\"%s\"" $full) -}}
{{- $hpa := ternary (printf "keda-hpa-%s" $full) $full (eq $root.Values.autoscaling.mode "keda") -}}
{{- $expr = $expr | replace "horizontalpodautoscaler=\"bellhop\"" (printf "horizontalpodautoscaler=\"%s\"" $hpa) -}}
{{- if hasKey $set "threshold" -}}
{{- $expr = regexReplaceAll (include "bellhop.thresholdPattern" $root) (trim $expr) (printf "${1} %v" $set.threshold) -}}
{{- end -}}
{{- $new := merge (dict "expr" $expr) (deepCopy $rule) -}}
{{- if hasKey ($rule.annotations | default dict) "runbook_url" -}}
{{- $_ := set $new.annotations "runbook_url" (printf "%s/%s.md" ($root.Values.metrics.prometheusRule.runbookBaseUrl | trimSuffix "/") $rule.alert) -}}
{{- end -}}
{{- if $rule.alert -}}
{{- with $set.for -}}{{- $_ := set $new "for" . -}}{{- end -}}
{{- $labels := merge (deepCopy ($set.labels | default dict)) $root.Values.metrics.prometheusRule.alertLabels ($rule.labels | default dict) -}}
{{- with $set.severity -}}{{- $_ := set $labels "severity" . -}}{{- end -}}
{{- if $labels -}}{{- $_ := set $new "labels" $labels -}}{{- end -}}
{{- end -}}
{{- $rules = append $rules $new -}}
{{- end -}}
{{- end -}}
{{- if $rules -}}
{{- $groups = append $groups (merge (dict "rules" $rules) (deepCopy $group)) -}}
{{- end -}}
{{- end -}}
{{- $groups = concat $groups .Values.metrics.prometheusRule.extraGroups -}}
{{- if $groups -}}
{{- toYaml $groups -}}
{{- end -}}
{{- end -}}
