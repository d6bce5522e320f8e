{{/* Migrations: one container, run as Job, hook or init container. */}}

{{/* "true" when migrations run in this way: (list . "job"). */}}
{{- define "bellhop.migratesAs" -}}
{{- $root := index . 0 -}}
{{- if and (eq $root.Values.config.store.backend "postgres") (eq $root.Values.migrations.mode (index . 1)) -}}true{{- end -}}
{{- end -}}

{{- define "bellhop.migrateContainer" -}}
- name: migrate
  image: {{ include "bellhop.image" (dict "image" .Values.image "default" .Chart.AppVersion) | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [migrate, up, --lock-timeout, {{ .Values.migrations.lockTimeout | quote }}]
  env:
    {{- include "bellhop.migrateEnv" . | nindent 4 }}
  {{- with .Values.extraEnvFrom }}
  envFrom:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.migrations.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.securityContext | nindent 4 }}
  volumeMounts:
    - name: tmp
      mountPath: /tmp
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* The Job's spec. It needs nothing of this release, so that it can run before it: no account, no ConfigMap. */}}
{{- define "bellhop.migrateJobSpec" -}}
backoffLimit: {{ .Values.migrations.backoffLimit }}
activeDeadlineSeconds: {{ .Values.migrations.activeDeadlineSeconds }}
{{- if and (eq .Values.migrations.mode "job") (ge (int .Values.migrations.ttlSecondsAfterFinished) 0) }}
ttlSecondsAfterFinished: {{ .Values.migrations.ttlSecondsAfterFinished }}
{{- end }}
template:
  metadata:
    labels:
      {{- include "bellhop.podLabels" (list . (include "bellhop.partName" (list . "migrate"))) | nindent 6 }}
  spec:
    restartPolicy: Never
    serviceAccountName: {{ default "default" .Values.migrations.serviceAccountName }}
    automountServiceAccountToken: false
    enableServiceLinks: false
    securityContext:
      {{- toYaml .Values.podSecurityContext | nindent 6 }}
    {{- with .Values.imagePullSecrets }}
    imagePullSecrets:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.nodeSelector }}
    nodeSelector:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.tolerations }}
    tolerations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.migrations.initContainers }}
    initContainers:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    containers:
      {{- include "bellhop.migrateContainer" . | nindent 6 }}
    volumes:
      - name: tmp
        emptyDir:
          sizeLimit: {{ .Values.tmpSizeLimit }}
      {{- with .Values.extraVolumes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- end -}}
