{{/* Problems of pods and monitors. See _validate.tpl. */}}

{{- define "bellhop.problems.pods" -}}
{{- if .Values.podDisruptionBudget.enabled -}}
{{- $least := toString .Values.podDisruptionBudget.minAvailable -}}
{{- $most := toString .Values.podDisruptionBudget.maxUnavailable -}}
{{- $lowest := include "bellhop.lowestReplicas" . | int64 -}}
{{- if and (ne $least "") (ne $most "") -}}
{{- printf "podDisruptionBudget has both minAvailable and maxUnavailable: set one of them to \"\"\n" -}}
{{- else if ne $least "" -}}
{{- if ge (include "bellhop.share" (list $least $lowest) | int64) $lowest -}}
{{- printf "podDisruptionBudget.minAvailable %s of %d pods would block every node drain; use maxUnavailable\n" $least $lowest -}}
{{- end -}}
{{- else if eq $most "" -}}
{{- printf "podDisruptionBudget has neither minAvailable nor maxUnavailable\n" -}}
{{- else if has $most (list "0" "0%") -}}
{{- printf "podDisruptionBudget.maxUnavailable %s would block every node drain; use 1\n" $most -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.image.tag "latest") (not .Values.image.digest) -}}
{{- printf "image.tag=latest without image.digest: nobody could say what runs\n" -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.problems.security" -}}
{{- range $key, $context := dict "podSecurityContext" .Values.podSecurityContext "securityContext" .Values.securityContext -}}
{{- if eq (toString (get $context "runAsNonRoot")) "false" -}}
{{- printf "%s.runAsNonRoot=false: bellhop does not need root\n" $key -}}
{{- end -}}
{{- range list "privileged" "allowPrivilegeEscalation" -}}
{{- if eq (toString (get $context .)) "true" -}}
{{- printf "%s.%s=true: bellhop does not need it, and the restricted pod security standard refuses it\n" $key . -}}
{{- end -}}
{{- end -}}
{{- if and (hasKey $context "runAsUser") (eq (int64 (get $context "runAsUser")) 0) -}}
{{- printf "%s.runAsUser=0 is root: bellhop does not need it\n" $key -}}
{{- end -}}
{{- end -}}
{{- if and (not (hasKey .Values.podSecurityContext "runAsNonRoot")) (not (hasKey .Values.securityContext "runAsNonRoot")) -}}
{{- printf "runAsNonRoot is neither in podSecurityContext nor in securityContext: bellhop does not need root\n" -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.problems.metrics" -}}
{{- if and .Values.metrics.podMonitor.enabled .Values.metrics.gmpPodMonitoring.enabled -}}
{{- printf "metrics.podMonitor and metrics.gmpPodMonitoring are both enabled: every series would be there twice\n" -}}
{{- end -}}
{{- if gt (include "bellhop.milliseconds" .Values.metrics.podMonitor.scrapeTimeout | int64) (include "bellhop.milliseconds" .Values.metrics.podMonitor.interval | int64) -}}
{{- printf "metrics.podMonitor.scrapeTimeout %s is longer than its interval %s: Prometheus refuses that\n" .Values.metrics.podMonitor.scrapeTimeout .Values.metrics.podMonitor.interval -}}
{{- end -}}
{{- if and .Values.metrics.prometheusRule.enabled (not .Values.metrics.prometheusRule.runbookBaseUrl) -}}
{{- printf "metrics.prometheusRule.runbookBaseUrl is needed: where those who are woken can read docs/runbooks, such as https://github.com/ORGANISATION/bellhop/blob/main/docs/runbooks\n" -}}
{{- end -}}
{{- $apis := list
  (list "podMonitor" "monitoring.coreos.com/v1" .Values.metrics.podMonitor.enabled .Values.metrics.podMonitor.renderMode)
  (list "gmpPodMonitoring" "monitoring.googleapis.com/v1" .Values.metrics.gmpPodMonitoring.enabled .Values.metrics.gmpPodMonitoring.renderMode)
  (list "prometheusRule" "monitoring.coreos.com/v1" .Values.metrics.prometheusRule.enabled .Values.metrics.prometheusRule.renderMode) -}}
{{- range $apis -}}
{{- if and (index . 2) (eq (index . 3) "failIfMissing") (not ($.Capabilities.APIVersions.Has (index . 1))) -}}
{{- printf "metrics.%s needs %s, which is not installed (renderMode=failIfMissing)\n" (index . 0) (index . 1) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metrics.prometheusRule.enabled .Values.metrics.prometheusRule.alerts -}}
{{- $known := dict -}}
{{- range (include "bellhop.ruleFiles" . | fromYaml).groups -}}
{{- range .rules -}}
{{- if .alert -}}{{- $_ := set $known .alert (toString .expr) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $set := .Values.metrics.prometheusRule.alerts -}}
{{- if not (hasKey $known $name) -}}
{{- printf "metrics.prometheusRule.alerts.%s: there is no such alert\n" $name -}}
{{- else if and (hasKey $set "threshold") (not (regexMatch (include "bellhop.thresholdPattern" $) (trim (get $known $name)))) -}}
{{- printf "metrics.prometheusRule.alerts.%s: its expression does not end with a number, so there is no threshold to set\n" $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
