{{/*
What a release makes for itself at its first installation, and finds again at each upgrade: a CA, certificates by it, a token and
passwords; nothing of it where the values name a Secret. Made once for all templates, which then find it in .Values.generated. Without a
look at the cluster (helm template) it is made anew each time.
*/}}
{{- define "weir.generate" -}}
{{- if not (hasKey .Values "generated") -}}
{{- $name := include "weir.fullname" . -}}
{{- $made := dict -}}
{{- $servers := include "weir.ownCertificates" . | splitList " " | compact -}}
{{- $kept := lookup "v1" "Secret" .Release.Namespace (printf "%s-ca" $name) -}}
{{- $ca := dict -}}
{{- if $kept -}}
{{- $ca = buildCustomCert (index $kept.data "tls.crt") (index $kept.data "tls.key") -}}
{{- else if $servers -}}
{{- $ca = genCA (printf "%s of namespace %s" $name .Release.Namespace) 7300 -}}
{{- end -}}
{{- if $servers -}}
{{- $_ := set $made "ca" (dict "certificate" $ca.Cert "key" $ca.Key) -}}
{{- end -}}
{{- range $server := $servers -}}
{{- $host := printf "%s-%s" $name $server -}}
{{- $before := lookup "v1" "Secret" $.Release.Namespace (printf "%s-tls" $host) -}}
{{- if and $kept $before -}}
{{- $_ := set $made $server (dict "certificate" (index $before.data "tls.crt" | b64dec) "key" (index $before.data "tls.key" | b64dec)) -}}
{{- else -}}
{{- $names := list $host (printf "%s.%s" $host $.Release.Namespace) (printf "%s.%s.svc" $host $.Release.Namespace) -}}
{{- $addresses := list -}}
{{- /* People reach the console by kubectl port-forward. */ -}}
{{- if eq $server "console" -}}
{{- $names = append $names "localhost" -}}
{{- $addresses = list "127.0.0.1" -}}
{{- end -}}
{{- $certificate := genSignedCert $host $addresses $names 3650 $ca -}}
{{- $_ := set $made $server (dict "certificate" $certificate.Cert "key" $certificate.Key) -}}
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
{{- $_ := set $made "passwords" $passwords -}}
{{- end -}}
{{- if not .Values.adminToken.existingSecret -}}
{{- $admin := lookup "v1" "Secret" .Release.Namespace (printf "%s-admin" $name) -}}
{{- $_ := set $made "token" (ternary (get (get (default dict $admin) "data" | default dict) "token" | b64dec) (randAlphaNum 40) (not (empty $admin))) -}}
{{- end -}}
{{- $_ := set .Values "generated" $made -}}
{{- end -}}
{{- end }}

{{/* A Secret with one of the certificates: {root, server}. */}}
{{- define "weir.certificate" -}}
{{- $made := index .root.Values.generated .server -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ include "weir.tlsSecret" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "weir.componentLabels" (dict "root" .root "component" .server) | nindent 4 }}
type: kubernetes.io/tls
data:
  tls.crt: {{ $made.certificate | b64enc }}
  tls.key: {{ $made.key | b64enc }}
  ca.crt: {{ .root.Values.generated.ca.certificate | b64enc }}
{{- end }}
