{{/* CEL for the annotations `weir.dev/health-check-…`: the message about VALUE, or '' if it is valid. An invalid health-check counts as off. */}}

{{- define "weir.cel.check" -}}
variables.own[?'weir.dev/health-check'].orValue('off')
{{- end }}

{{/* Takes the CEL for an annotation, and adds that the annotation requires a health check. */}}
{{- define "weir.cel.ofCheck" -}}
!({{ include "weir.cel.check" . }} in ['tcp', 'http', 'https', 'grpc'])
? 'can be honoured only with weir.dev/health-check: tcp, http, https or grpc; add that annotation, or remove this one'
: {{ . }}
{{- end }}

{{- define "weir.cel.path" -}}
!({{ include "weir.cel.check" . }} in ['http', 'https', 'grpc'])
? 'can be honoured only with weir.dev/health-check: http, https or grpc; add that annotation, or remove this one'
: {{ include "weir.cel.value" . }}
{{- end }}

{{/* Takes the grammar of the timeout, which must not be longer than the interval. */}}
{{- define "weir.cel.timeout" -}}
{{ include "weir.cel.isDuration" (dict "value" "VALUE" "grammar" . "max" "variables.interval") }} ? ''
: 'is not allowed; use {{ .expected }}, which is ' + string(double(variables.interval) / 1000.0) + 's'
{{- end }}
