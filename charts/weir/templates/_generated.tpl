{{/*
Generates the secrets of a release at its first installation: a CA, certificates, a token and passwords, except for
those whose existing Secret the values name. Upgrades look the secrets up in the cluster; without access to the cluster
(helm template) they change each time. The first template that includes this one generates them and stores them in
.Values.generated for all templates.
*/}}
{{- define "weir.generate" -}}
{{- if not (hasKey .Values "generated") -}}
{{- $name := include "weir.fullname" . -}}
{{- $generated := dict -}}
{{- $servers := include "weir.generatedCertificates" . | splitList " " | compact -}}
{{- $existingCa := lookup "v1" "Secret" .Release.Namespace (printf "%s-ca" $name) -}}
{{- $ca := dict -}}
{{- if $existingCa -}}
{{- $ca = buildCustomCert (index $existingCa.data "tls.crt") (index $existingCa.data "tls.key") -}}
{{- else if $servers -}}
{{- $ca = genCA (printf "%s of namespace %s" $name .Release.Namespace) 7300 -}}
{{- end -}}
{{- if $servers -}}
{{- $_ := set $generated "ca" (dict "certificate" $ca.Cert "key" $ca.Key) -}}
{{- end -}}
{{- range $server := $servers -}}
{{- $host := printf "%s-%s" $name $server -}}
{{- $existing := lookup "v1" "Secret" $.Release.Namespace (printf "%s-tls" $host) -}}
{{- if and $existingCa $existing -}}
{{- $_ := set $generated $server (dict "certificate" (index $existing.data "tls.crt" | b64dec) "key" (index $existing.data "tls.key" | b64dec)) -}}
{{- else -}}
{{- $names := list $host (printf "%s.%s" $host $.Release.Namespace) (printf "%s.%s.svc" $host $.Release.Namespace) -}}
{{- $addresses := list -}}
{{- /* Users reach the console at localhost by kubectl port-forward. */ -}}
{{- if eq $server "console" -}}
{{- $names = append $names "localhost" -}}
{{- $addresses = list "127.0.0.1" -}}
{{- end -}}
{{- $certificate := genSignedCert $host $addresses $names 3650 $ca -}}
{{- $_ := set $generated $server (dict "certificate" $certificate.Cert "key" $certificate.Key) -}}
{{- end -}}
{{- end -}}
{{- if not .Values.redis.auth.existingSecret -}}
{{- $users := lookup "v1" "Secret" .Release.Namespace (printf "%s-redis-users" $name) -}}
{{- $passwords := dict -}}
{{- range $user := list "controller" "proxy" "console" -}}
{{- $key := printf "%s-password" $user -}}
{{- $found := and $users (hasKey $users.data $key) -}}
{{- $_ := set $passwords $user (ternary (get (get (default dict $users) "data" | default dict) $key | b64dec) (randAlphaNum 40) (ternary true false (not (empty $found)))) -}}
{{- end -}}
{{- $_ := set $generated "passwords" $passwords -}}
{{- end -}}
{{- if not .Values.adminToken.existingSecret -}}
{{- $admin := lookup "v1" "Secret" .Release.Namespace (printf "%s-admin" $name) -}}
{{- $_ := set $generated "token" (ternary (get (get (default dict $admin) "data" | default dict) "token" | b64dec) (randAlphaNum 40) (not (empty $admin))) -}}
{{- end -}}
{{- $_ := set .Values "generated" $generated -}}
{{- end -}}
{{- end }}

{{/* The Secret with the generated certificate of a server. Takes {root, server}. */}}
{{- define "weir.certificate" -}}
{{- $generated := index .root.Values.generated .server -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ include "weir.tlsSecret" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "weir.componentLabels" (dict "root" .root "component" .server) | nindent 4 }}
type: kubernetes.io/tls
data:
  tls.crt: {{ $generated.certificate | b64enc }}
  tls.key: {{ $generated.key | b64enc }}
  ca.crt: {{ .root.Values.generated.ca.certificate | b64enc }}
{{- end }}
