{{/* The version in which this cluster serves MutatingAdmissionPolicy; empty, it does not. */}}
{{- define "weir.admission.mutatingVersion" -}}
{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
v1
{{- else if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy" -}}
v1beta1
{{- end -}}
{{- end }}

{{- define "weir.admission.nodePorts" -}}
{{- $wish := toString .Values.admission.nodePorts -}}
{{- $served := include "weir.admission.mutatingVersion" . -}}
{{- if not (has $wish (list "" "Mutate" "Warn" "Deny")) -}}
{{- fail (printf "admission.nodePorts is %q; use Mutate, Warn, Deny, or \"\" for Mutate where it is served" $wish) -}}
{{- end -}}
{{- if and (eq $wish "Mutate") (not $served) -}}
{{- fail "admission.nodePorts is \"Mutate\", and this cluster does not serve MutatingAdmissionPolicy (Kubernetes 1.36 does); use Warn or Deny" -}}
{{- end -}}
{{- $wish | default (ternary "Mutate" "Warn" (ne $served "")) -}}
{{- end }}
