{{/* What every name begins with; cluster-scoped ones, too, so that two releases do not meet. */}}
{{- define "weir.fullname" -}}
{{- contains "weir" .Release.Name | ternary .Release.Name (printf "%s-weir" .Release.Name) -}}
{{- end }}

{{- define "weir.labels" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
