{{/* The prefix of every name. Cluster-scoped names have it as well, so that two releases do not conflict. */}}
{{- define "weir.fullname" -}}
{{- $part := .Values.nameOverride | default "weir" -}}
{{- $default := contains $part .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $part) -}}
{{- $name := .Values.fullnameOverride | default $default -}}
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
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
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

{{/*
The image reference. Takes {root, image}. An image with a registry (a part with "." or ":" before the first "/") is
complete. Otherwise the image gets the registry of the values, and a tag unless it has a tag or a digest.
*/}}
{{- define "weir.image" -}}
{{- $values := .root.Values -}}
{{- $first := contains "/" .image | ternary (splitList "/" .image | first) "" -}}
{{- $own := $values.image.registry -}}
{{- $shared := eq $own "ghcr.io/weir-dev" | ternary $values.global.imageRegistry "" -}}
{{- $registry := $shared | default $own | trimSuffix "/" -}}
{{- $hasRegistry := or (contains "." $first) (contains ":" $first) (eq $first "localhost") -}}
{{- $name := $hasRegistry | ternary .image (printf "%s/%s" $registry .image) -}}
{{- $isTagged := or (contains "@" .image) (splitList "/" .image | last | contains ":") -}}
{{- $isTagged | ternary $name (printf "%s:%s" $name ($values.image.tag | default .root.Chart.AppVersion)) -}}
{{- end }}

{{- define "weir.pullSecrets" -}}
{{- with concat .Values.image.pullSecrets .Values.global.imagePullSecrets | uniq }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The affinity and the additional environment of a component. Each takes the component's values. */}}
{{- define "weir.affinity" -}}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "weir.extraEnvironment" -}}
{{- with .extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
