{{/* Where pods go. */}}

{{- define "bellhop.affinity" -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- if not (hasKey $affinity "podAntiAffinity") -}}
{{- $labels := include "bellhop.selectorLabels" . | fromYaml -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
{{- if eq .Values.podAntiAffinityPreset "hard" -}}
{{- $_ := set $affinity "podAntiAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (list $term)) -}}
{{- else if eq .Values.podAntiAffinityPreset "soft" -}}
{{- $_ := set $affinity "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" (list (dict "weight" 100 "podAffinityTerm" $term))) -}}
{{- end -}}
{{- end -}}
{{- if $affinity -}}
{{- toYaml $affinity -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.topologySpread" -}}
{{- $labels := include "bellhop.selectorLabels" . | fromYaml -}}
{{- $constraints := list -}}
{{- range .Values.topologySpreadConstraints -}}
{{- $constraints = append $constraints (merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" $labels))) -}}
{{- end -}}
{{- if $constraints -}}
{{- toYaml $constraints -}}
{{- end -}}
{{- end -}}
