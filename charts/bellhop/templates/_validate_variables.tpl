{{/* Problems of what is added to the container, and of clusters that are too old for it. See _validate.tpl. */}}

{{/* Keys whose value the chart computes with, so that it must come from `config`. */}}
{{- define "bellhop.problems.variables" -}}
{{- $secret := list "DATABASE_URL" "BELLHOP__STORE__URL" "BELLHOP__STORE__MIGRATE_URL" "BELLHOP__HANDLER__SIGNING_SECRET" "BELLHOP__HANDLER__BEARER_TOKEN" -}}
{{- $own := list "BELLHOP_CONFIG" -}}
{{- range list "STORE__BACKEND" "STORE__REPLICAS" "STORE__SINGLE_PROCESS" "STORE__PATH" "STORE__MAX_CONNECTIONS" "SERVER__LISTEN" "WORKER__CONCURRENCY" "WORKER__DRAIN_TIMEOUT" "HANDLER__KIND" "HANDLER__URL" "HANDLER__TIMEOUT" "HANDLER__ON_UNKNOWN" "HANDLER__AUTH" "RULE" "CLAIMS__RETENTION" "PUBSUB__PROJECT" "PUBSUB__SUBSCRIPTION" -}}
{{- $own = append $own (printf "BELLHOP__%s" .) -}}
{{- end -}}
{{- if .Values.postgres.existingSecret -}}{{- $own = concat $own (list "DATABASE_URL" "BELLHOP__STORE__URL") -}}{{- end -}}
{{- if .Values.postgres.migrateUrlKey -}}{{- $own = append $own "BELLHOP__STORE__MIGRATE_URL" -}}{{- end -}}
{{- if .Values.handlerAuth.signingSecret.existingSecret -}}{{- $own = append $own "BELLHOP__HANDLER__SIGNING_SECRET" -}}{{- end -}}
{{- if .Values.handlerAuth.bearerToken.existingSecret -}}{{- $own = append $own "BELLHOP__HANDLER__BEARER_TOKEN" -}}{{- end -}}
{{- range .Values.extraEnv -}}
{{- if has .name $own -}}
{{- printf "extraEnv sets %s, which the chart sets or computes with: give it in values instead\n" .name -}}
{{- else if and (has .name $secret) (hasKey . "value") -}}
{{- printf "extraEnv holds %s itself, readable by everyone who reads the release: refer to a Secret with valueFrom.secretKeyRef\n" .name -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraArgs -}}
{{- $flag := splitList "=" . | first -}}
{{- if has $flag (list "--set" "--config" "--drain-timeout") -}}
{{- printf "extraArgs has %s, which goes past what the chart checks and computes: use config\n" $flag -}}
{{- end -}}
{{- if regexMatch "^-[^-]*c" . -}}
{{- printf "extraArgs has -c, which goes past what the chart checks and computes: use config\n" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "bellhop.problems.cluster" -}}
{{- $version := .Capabilities.KubeVersion.Version -}}
{{- if semverCompare "<1.29.0-0" $version -}}
{{- range $key, $containers := dict "initContainers" .Values.initContainers "migrations.initContainers" .Values.migrations.initContainers -}}
{{- range $containers -}}
{{- if eq (toString .restartPolicy) "Always" -}}
{{- printf "%s: %s has restartPolicy Always, which needs Kubernetes 1.29: %s would wait for its end for ever\n" $key .name $version -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (hasKey (dig "preStop" (dict) .Values.lifecycle) "sleep") (semverCompare "<1.30.0-0" $version) -}}
{{- printf "lifecycle.preStop.sleep needs Kubernetes 1.30; this is %s\n" $version -}}
{{- end -}}
{{- range $way, $rules := .Values.autoscaling.behavior -}}
{{- if and (hasKey $rules "tolerance") (semverCompare "<1.33.0-0" $version) -}}
{{- printf "autoscaling.behavior.%s.tolerance needs Kubernetes 1.35 (beta), or 1.33 with its feature gate; this is %s\n" $way $version -}}
{{- end -}}
{{- end -}}
{{- end -}}
