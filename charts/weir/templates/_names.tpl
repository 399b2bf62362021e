{{/* The prefix of every name. Cluster-scoped names have it as well, so that two releases do not conflict. */}}
{{- define "weir.fullname" -}}
{{- $name := contains "weir" .Release.Name | ternary .Release.Name (printf "%s-weir" .Release.Name) -}}
{{- if or (gt (len $name) 40) (not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name)) -}}
{{- fail (printf "invalid release name %q: %s-controller would be too long or an invalid name; use at most 35 lower-case letters, digits and hyphens, beginning with a letter" .Release.Name $name) -}}
{{- end -}}
{{- $name -}}
{{- end }}

{{/* The name of the fleet: in Redis keys, of the Lease, and of each TenantUsage. */}}
{{- define "weir.fleet" -}}
{{- .Values.fleet | default (include "weir.fullname" .) -}}
{{- end }}

{{- define "weir.labels" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The labels of a component. Takes {root, component}. */}}
{{- define "weir.componentLabels" -}}
{{ include "weir.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The labels that select the pods of a component; a selector can never change during the life of a release. */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The image reference. Takes {root, image}. An image with a digest gets no tag. */}}
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
