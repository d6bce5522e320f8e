{{/* The daemon's configuration file: `config` as given, and what only the chart knows. */}}
{{- define "bellhop.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config.store "replicas" (include "bellhop.processes" . | int64) -}}
{{- if include "bellhop.singleProcess" . -}}
{{- $_ := set $config.store "single_process" true -}}
{{- end -}}
{{- if ne $config.store.backend "sqlite" -}}
{{- $_ := unset $config.store "path" -}}
{{- end -}}
{{- if not $config.handler.url -}}
{{- $_ := unset $config.handler "url" -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Changes when pods must restart. How many share a PostgreSQL store is no reason to. */}}
{{- define "bellhop.configChecksum" -}}
{{- $config := include "bellhop.config" . | fromYaml -}}
{{- $_ := unset $config.store "replicas" -}}
{{- toYaml $config | sha256sum -}}
{{- end -}}

{{- define "bellhop.configMapName" -}}
{{- default (include "bellhop.fullname" .) .Values.existingConfigMap -}}
{{- end -}}

{{/* The database's URL. Jobs use it too, so it names only what exists before the release. */}}
{{- define "bellhop.databaseEnv" -}}
{{- if and (eq .Values.config.store.backend "postgres") .Values.postgres.existingSecret }}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.postgres.existingSecret }}
      key: {{ .Values.postgres.urlKey }}
{{- end }}
{{- end -}}

{{- define "bellhop.migrateEnv" -}}
- name: BELLHOP__STORE__BACKEND
  value: postgres
{{- with .Values.config.store.url_file }}
- name: BELLHOP__STORE__URL_FILE
  value: {{ . | quote }}
{{- end }}
{{- with .Values.config.store.migrate_url_file }}
- name: BELLHOP__STORE__MIGRATE_URL_FILE
  value: {{ . | quote }}
{{- end }}
- name: BELLHOP__LOG__FORMAT
  value: {{ .Values.config.log.format }}
{{- include "bellhop.databaseEnv" . }}
{{- if and .Values.postgres.existingSecret .Values.postgres.migrateUrlKey }}
- name: BELLHOP__STORE__MIGRATE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.postgres.existingSecret }}
      key: {{ .Values.postgres.migrateUrlKey }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What the worker's container has in its environment. */}}
{{- define "bellhop.env" -}}
- name: BELLHOP_CONFIG
  value: /etc/bellhop/{{ ternary .Values.existingConfigMapKey "bellhop.yaml" (ne .Values.existingConfigMap "") }}
{{- if .Values.existingConfigMap }}
- name: BELLHOP__STORE__BACKEND
  value: {{ .Values.config.store.backend }}
- name: BELLHOP__STORE__REPLICAS
  value: {{ include "bellhop.processes" . | quote }}
{{- if include "bellhop.singleProcess" . }}
- name: BELLHOP__STORE__SINGLE_PROCESS
  value: "true"
{{- end }}
{{- end }}
{{- include "bellhop.databaseEnv" . }}
{{- if .Values.handlerAuth.signingSecret.existingSecret }}
- name: BELLHOP__HANDLER__SIGNING_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ .Values.handlerAuth.signingSecret.existingSecret }}
      key: {{ .Values.handlerAuth.signingSecret.key }}
{{- end }}
{{- if .Values.handlerAuth.bearerToken.existingSecret }}
- name: BELLHOP__HANDLER__BEARER_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .Values.handlerAuth.bearerToken.existingSecret }}
      key: {{ .Values.handlerAuth.bearerToken.key }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
