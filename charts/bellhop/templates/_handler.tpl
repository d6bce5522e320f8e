{{/* Where the handler is. */}}

{{- define "bellhop.handlerOnLoopback" -}}
{{- if regexMatch "^(?i)https?://(localhost|127(\\.[0-9]+){3}|\\[::1\\]|\\[::ffff:127(\\.[0-9]+){3}\\])(:[0-9]+)?([/?].*)?$" .Values.config.handler.url -}}true{{- end -}}
{{- end -}}

{{/* The port a network policy must open for it; empty where there is nothing to open. */}}
{{- define "bellhop.handlerPort" -}}
{{- if and (eq .Values.config.handler.kind "http") .Values.config.handler.url (not (include "bellhop.handlerOnLoopback" .)) -}}
{{- $given := regexReplaceAll "^(?i)https?://[^/?]*?(:([0-9]+))?([/?].*)?$" .Values.config.handler.url "${2}" -}}
{{- $port := default (ternary "80" "443" (hasPrefix "http:" (lower .Values.config.handler.url))) $given -}}
{{- if ne $port "443" -}}{{- $port -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* "true" when a container beside bellhop may listen on loopback: an extra one, or a sidecar among the init containers. */}}
{{- define "bellhop.hasNeighbour" -}}
{{- $found := not (empty .Values.extraContainers) -}}
{{- range .Values.initContainers -}}
{{- if eq (toString .restartPolicy) "Always" -}}{{- $found = true -}}{{- end -}}
{{- end -}}
{{- if $found -}}true{{- end -}}
{{- end -}}

{{/* "true" when some event is never run again by machine. */}}
{{- define "bellhop.isStrict" -}}
{{- $strict := eq .Values.config.handler.on_unknown "quarantine" -}}
{{- range .Values.config.rule -}}
{{- if eq (toString .on_unknown) "quarantine" -}}{{- $strict = true -}}{{- end -}}
{{- end -}}
{{- if $strict -}}true{{- end -}}
{{- end -}}

{{/* "true" when extraEnv sets a variable: (list . "NAME"). */}}
{{- define "bellhop.hasEnv" -}}
{{- $name := index . 1 -}}
{{- range (index . 0).Values.extraEnv -}}
{{- if eq .name $name -}}true{{- end -}}
{{- end -}}
{{- end -}}
