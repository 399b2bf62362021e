{{/* CEL for what belongs to `weir.dev/health-check`: what is wrong with VALUE, or ''. A check that is wrong itself counts as none. */}}

{{- define "weir.cel.check" -}}
variables.own[?'weir.dev/health-check'].orValue('off')
{{- end }}

{{- define "weir.cel.ofCheck" -}}
!({{ include "weir.cel.check" . }} in ['tcp', 'http', 'https'])
? 'can be honoured only with weir.dev/health-check: tcp, http or https; add that annotation, or remove this one'
: {{ . }}
{{- end }}

{{- define "weir.cel.path" -}}
!({{ include "weir.cel.check" . }} in ['http', 'https'])
? 'can be honoured only with weir.dev/health-check: http or https; add that annotation, or remove this one'
: VALUE.matches('^/[!-"$-~]*$') && VALUE.size() <= 1024 ? ''
: 'is not allowed; use a path such as /healthz: it begins with /, and has no blanks and at most 1024 characters'
{{- end }}

{{- define "weir.cel.isInterval" -}}
{{ include "weir.cel.isDuration" (dict "value" . "least" "1000" "most" "600000") }}
{{- end }}

{{- define "weir.cel.interval" -}}
{{ include "weir.cel.isInterval" "VALUE" }} ? '' : 'is not allowed; use a duration from 1s to 10m'
{{- end }}

{{- define "weir.cel.timeout" -}}
{{ include "weir.cel.isDuration" (dict "value" "VALUE" "least" "1" "most" "variables.interval") }} ? ''
: 'is not allowed; use a duration from 1ms to the interval, which is ' + string(double(variables.interval) / 1000.0) + 's'
{{- end }}

{{- define "weir.cel.answers" -}}
VALUE.matches('^[0-9]{1,2}$') && int(VALUE) >= 1 && int(VALUE) <= 10 ? '' : 'is not allowed; use a number from 1 to 10'
{{- end }}
