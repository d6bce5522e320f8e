{{/* Names and labels. */}}

{{- define "bellhop.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "bellhop.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* A name with a suffix, shortened with a hash where the limit asks for it: (list . "suffix" limit). */}}
{{- define "bellhop.suffixed" -}}
{{- $whole := printf "%s-%s" (include "bellhop.fullname" (index . 0)) (index . 1) -}}
{{- $limit := int (index . 2) -}}
{{- if gt (len $whole) $limit -}}
{{- printf "%s-%s" (trunc (int (sub $limit 9)) $whole | trimSuffix "-") (sha256sum $whole | trunc 8) -}}
{{- else -}}
{{- $whole -}}
{{- end -}}
{{- end -}}

{{/* Immutable once installed: name and instance, nothing that changes with a version. */}}
{{- define "bellhop.selectorLabels" -}}
app.kubernetes.io/name: {{ include "bellhop.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What every object carries besides the name label. */}}
{{- define "bellhop.releaseLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: {{ include "bellhop.name" . }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with omit .Values.commonLabels "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "app.kubernetes.io/part-of" "helm.sh/chart" }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "bellhop.labels" -}}
app.kubernetes.io/name: {{ include "bellhop.name" . }}
{{ include "bellhop.releaseLabels" . }}
{{- end -}}

{{/* Labels of pods that are not workers (migrations, floors, tests): another name, so that the selector, the disruption
     budget, the monitors and the network policy of the workers do not match them. (list . "part") */}}
{{- define "bellhop.partLabels" -}}
app.kubernetes.io/name: {{ include "bellhop.partName" . }}
{{ include "bellhop.releaseLabels" (index . 0) }}
{{- end -}}

{{/* Labels inside pod templates, without the chart's version: a new chart alone does not restart pods. (list . name) */}}
{{- define "bellhop.podLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
{{- with omit $root.Values.commonLabels "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "bellhop.partName" -}}
{{- printf "%s-%s" (include "bellhop.name" (index . 0)) (index . 1) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "bellhop.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "bellhop.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* (dict "image" … "default" tag) */}}
{{- define "bellhop.image" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (default .default .image.tag) -}}
{{- end -}}
{{- end -}}

{{/* "true" when an object of an optional API is to be rendered: (dict "root" . "api" group/version "mode" renderMode). */}}
{{- define "bellhop.hasApi" -}}
{{- if or (eq .mode "alwaysRender") (.root.Capabilities.APIVersions.Has .api) -}}true{{- end -}}
{{- end -}}
