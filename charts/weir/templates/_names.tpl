{{/* What every name begins with; cluster-scoped ones, too, so that two releases do not meet. */}}
{{- define "weir.fullname" -}}
{{- $name := contains "weir" .Release.Name | ternary .Release.Name (printf "%s-weir" .Release.Name) -}}
{{- if or (gt (len $name) 40) (not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name)) -}}
{{- fail (printf "release %q gives names such as %s-controller; use a name of at most 35 lower-case letters, digits and hyphens that begins with a letter" .Release.Name $name) -}}
{{- end -}}
{{- $name -}}
{{- end }}

{{/* In Redis, of the Lease, and of each TenantUsage. */}}
{{- define "weir.fleet" -}}
{{- .Values.fleet | default (include "weir.fullname" .) -}}
{{- end }}

{{- define "weir.labels" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Of one component: {root, component}. */}}
{{- define "weir.componentLabels" -}}
{{ include "weir.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* By which its pods are found; never changes over the life of a release. */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Of one program: {root, image}. A digest in its name stands for itself. */}}
{{- define "weir.image" -}}
{{- $tag := .root.Values.image.tag | default .root.Chart.AppVersion -}}
{{- $name := printf "%s/%s" (trimSuffix "/" .root.Values.image.registry) .image -}}
{{- contains "@" .image | ternary $name (printf "%s:%s" $name $tag) -}}
{{- end }}

{{- define "weir.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}
