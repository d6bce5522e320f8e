{{/* Where the handler is. */}}

{{- define "bellhop.handlerOnLoopback" -}}
{{- if regexMatch "^(?i)https?://(localhost|127(\\.[0-9]+){3}|\\[::1\\]|\\[::ffff:127(\\.[0-9]+){3}\\])(:[0-9]+)?([/?].*)?$" .Values.config.handler.url -}}true{{- end -}}
{{- end -}}

{{/* The port of a URL; without one, that of its scheme. */}}
{{- define "bellhop.urlPort" -}}
{{- $given := regexReplaceAll "^(?:(?i:https?)://)?[^/?]*?(?::([0-9]+))?(?:[/?].*)?$" . "${1}" -}}
{{- default (ternary "443" "80" (hasPrefix "https:" (lower .))) $given -}}
{{- end -}}

{{/* "true" when events are posted to somewhere else than this pod. */}}
{{- define "bellhop.handlerElsewhere" -}}
{{- if and (eq .Values.config.handler.kind "http") .Values.config.handler.url (not (include "bellhop.handlerOnLoopback" .)) -}}true{{- end -}}
{{- end -}}

{{/* The port a network policy must open for the handler: of its pods, or of the proxy on the way. Empty: nothing to open. */}}
{{- define "bellhop.handlerPort" -}}
{{- if include "bellhop.handlerElsewhere" . -}}
{{- $port := .Values.networkPolicy.handlerPort | toString -}}
{{- if not $port -}}
{{- $port = include "bellhop.urlPort" (default .Values.config.handler.url (dig "handler" "proxy" "" .Values.config)) -}}
{{- end -}}
{{- if ne $port "443" -}}{{- $port -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The port of a Pub/Sub that is not Google's; empty where 443 does. */}}
{{- define "bellhop.endpointPort" -}}
{{- with dig "pubsub" "endpoint" "" .Values.config -}}
{{- $port := include "bellhop.urlPort" . -}}
{{- if ne $port "443" -}}{{- $port -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* "true" when the URL looks like a Service, whose port may differ from its pods', and nobody said what theirs is. */}}
{{- define "bellhop.handlerPortIsAGuess" -}}
{{- if and (include "bellhop.handlerElsewhere" .) (not (toString .Values.networkPolicy.handlerPort)) -}}
{{- if regexMatch "^(?i)https?://([^./:?]+|[^/:?]+\\.svc(\\.[^/:?]+)?)(:[0-9]+)?([/?].*)?$" .Values.config.handler.url -}}true{{- end -}}
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

{{/* "true" when extraEnv sets a variable, by value or by reference: (list . "NAME"). */}}
{{- define "bellhop.hasEnv" -}}
{{- $name := index . 1 -}}
{{- range (index . 0).Values.extraEnv -}}
{{- if eq .name $name -}}true{{- end -}}
{{- end -}}
{{- end -}}
