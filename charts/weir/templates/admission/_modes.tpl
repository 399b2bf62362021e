{{/* The API version of MutatingAdmissionPolicy in this cluster; empty if the cluster does not serve it. */}}
{{- define "weir.admission.mutatingVersion" -}}
{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
v1
{{- else if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy" -}}
v1beta1
{{- end -}}
{{- end }}

{{- define "weir.admission.nodePorts" -}}
{{- $mode := toString .Values.admission.nodePorts -}}
{{- $mutatingVersion := include "weir.admission.mutatingVersion" . -}}
{{- if not (has $mode (list "" "Mutate" "Warn" "Deny")) -}}
{{- fail (printf "admission.nodePorts is %q; use Mutate, Warn, Deny, or \"\" for Mutate if the cluster serves it, else Warn" $mode) -}}
{{- end -}}
{{- if and (eq $mode "Mutate") (not $mutatingVersion) -}}
{{- fail "admission.nodePorts is \"Mutate\", but this cluster does not serve MutatingAdmissionPolicy (Kubernetes 1.36 does); use Warn or Deny" -}}
{{- end -}}
{{- $mode | default (ternary "Mutate" "Warn" (ne $mutatingVersion "")) -}}
{{- end }}
