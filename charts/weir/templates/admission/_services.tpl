{{- define "weir.admission.services" -}}
resourceRules:
  - apiGroups: ['']
    apiVersions: [v1]
    operations: [CREATE, UPDATE]
    resources: [services]
{{- end }}

{{/* CEL: whether Weir takes `.service`, which is `object` or `oldObject`. The controller decides alike: isOwned in packages/model. */}}
{{- define "weir.admission.takes" -}}
{{- $class := .root.Values.controller.loadBalancerClass -}}
{{- $classOfClassless := .root.Values.controller.classless | ternary $class "" -}}
{{ .service }}.spec.?type.orValue('') == 'LoadBalancer'
&& !has({{ .service }}.metadata.deletionTimestamp)
&& {{ .service }}.metadata.?annotations[?'weir.dev/ignore'].orValue('') != 'true'
&& {{ .service }}.spec.?loadBalancerClass.orValue({{ toJson $classOfClassless }}) == {{ toJson $class }}
{{- end }}

{{/* The condition of a policy that is for Services which Weir takes. */}}
{{- define "weir.admission.taken" -}}
- name: taken
  expression: >-
    {{- include "weir.admission.takes" (dict "root" . "service" "object") | nindent 4 }}
{{- end }}

{{/* CEL: whether Weir took it before this update, so that what did not change is not judged. */}}
{{- define "weir.admission.wasTaken" -}}
oldObject != null
&& {{ include "weir.admission.takes" (dict "root" . "service" "oldObject") }}
{{- end }}

{{/* Binds the policy `.name` for all namespaces. */}}
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
