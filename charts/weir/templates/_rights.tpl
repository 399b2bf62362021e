{{/*
A role, bound to an account of the release. Takes {root, kind: ClusterRole | Role, name, rules, account, component}. A
Role and its binding are in `namespace`, by default the namespace of the release.
*/}}
{{- define "weir.rights" -}}
{{- $namespace := .namespace | default .root.Release.Namespace }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- if eq .kind "Role" }}
  namespace: {{ $namespace }}
  {{- end }}
  labels: {{- include "weir.componentLabels" . | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
rules: {{- toYaml .rules | nindent 2 }}
---
{{ include "weir.binding" . }}
{{- end }}

{{- define "weir.binding" -}}
{{- $namespace := .namespace | default .root.Release.Namespace }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}
  {{- if eq .kind "Role" }}
  namespace: {{ $namespace }}
  {{- end }}
  labels: {{- include "weir.componentLabels" . | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/* An account of the release. Takes {root, component}. */}}
{{- define "weir.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "weir.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "weir.componentLabels" . | nindent 4 }}
  {{- with merge dict (.annotations | default dict) (.accountAnnotations | default dict) }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* The account of a component, with the rights in rights/COMPONENT.yaml. Takes {root, component}. */}}
{{- define "weir.rightsOf" -}}
{{- $account := printf "%s-%s" (include "weir.fullname" .root) .component }}
{{- $options := . }}
{{ include "weir.account" . }}
{{- range $document := splitList "\n---\n" (tpl (.root.Files.Get (printf "rights/%s.yaml" .component)) .root) }}
{{- $role := fromYaml $document }}
---
{{ include "weir.rights" (merge (dict "kind" $role.kind "name" $account "rules" $role.rules "account" $account) $options) }}
{{- end }}
{{- end }}
