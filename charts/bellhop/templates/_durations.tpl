{{/* Durations, as the daemon reads them ("30s", "1m 30s", "10d"). */}}

{{- define "bellhop.milliseconds" -}}
{{- $names := dict
  "nanos ns nsec" 0.000001
  "us µs usec" 0.001
  "ms msec millis" 1.0
  "s sec secs second seconds" 1000.0
  "m min mins minute minutes" 60000.0
  "h hr hrs hour hours" 3600000.0
  "d day days" 86400000.0
  "w wk wks week weeks" 604800000.0
  "M month months" 2630016000.0
  "y yr yrs year years" 31557600000.0 -}}
{{- $total := 0.0 -}}
{{- range $part := regexFindAll "[0-9.]+\\s*[A-Za-zµ]+" (toString .) -1 -}}
{{- $number := regexFind "^[0-9.]+" $part | float64 -}}
{{- $unit := regexFind "[A-Za-zµ]+$" $part -}}
{{- range $known, $factor := $names -}}
{{- if has $unit (splitList " " $known) -}}
{{- $total = addf $total (mulf $number $factor) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $total | ceil | int64 -}}
{{- end -}}

{{/* Whole seconds, rounded up. */}}
{{- define "bellhop.seconds" -}}
{{- divf (include "bellhop.milliseconds" . | float64) 1000.0 | ceil | int64 -}}
{{- end -}}
