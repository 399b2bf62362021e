{{- define "weir.admission.services" -}}
resourceRules:
  - apiGroups: ['']
    apiVersions: [v1]
    operations: [CREATE, UPDATE]
    resources: [services]
{{- end }}

{{- define "weir.admission.suspensions" -}}
resourceRules:
  - apiGroups: [weir.dev]
    apiVersions: ['*']
    operations: [CREATE, UPDATE]
    resources: [suspensions]
{{- end }}

{{/* CEL: whether `.service`, which is `object` or `oldObject`, belongs to Weir. Must agree with isOwned in packages/model. */}}
{{- define "weir.admission.takes" -}}
{{- $class := .root.Values.controller.loadBalancerClass -}}
{{- $classOfClassless := .root.Values.controller.classless | ternary $class "" -}}
{{ .service }}.spec.?type.orValue('') == 'LoadBalancer'
&& !has({{ .service }}.metadata.deletionTimestamp)
&& {{ .service }}.metadata.?annotations[?'weir.dev/ignore'].orValue('') != 'true'
&& {{ .service }}.spec.?loadBalancerClass.orValue({{ toJson $classOfClassless }}) == {{ toJson $class }}
{{- end }}

{{/* The match condition of policies for Services that belong to Weir. */}}
{{- define "weir.admission.taken" -}}
- name: taken
  expression: >-
    {{- include "weir.admission.takes" (dict "root" . "service" "object") | nindent 4 }}
{{- end }}

{{/* CEL: whether the Service belonged to Weir before this update; unchanged values of such a Service are not judged. */}}
{{- define "weir.admission.wasTaken" -}}
oldObject != null
&& {{ include "weir.admission.takes" (dict "root" . "service" "oldObject") }}
{{- end }}

{{/* The binding of the policy `.name`, for all namespaces. */}}
{{- define "weir.admission.binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels: {{- include "weir.labels" .root | nindent 4 }}
spec:
  policyName: {{ .name }}
  validationActions: [{{ .action }}]
{{- end }}
