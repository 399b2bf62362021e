{{/*
The Secrets of a release: an existing Secret if the values name one, otherwise a Secret that the chart generates
(_generated.tpl).
*/}}

{{/* The name of the existing Secret for a server, or empty if the chart generates the Secret. Takes {root, server}. */}}
{{- define "weir.existingTlsSecret" -}}
{{- $values := .root.Values -}}
{{- $servers := dict "proxy" $values.proxy.admin "controller" $values.controller.admin "console" $values.console "redis" $values.redis -}}
{{- (get $servers .server).tls.existingSecret -}}
{{- end }}

{{/* The name of the Secret with the certificate of a server. Takes {root, server}. */}}
{{- define "weir.tlsSecret" -}}
{{- include "weir.existingTlsSecret" . | default (printf "%s-%s-tls" (include "weir.fullname" .root) .server) -}}
{{- end }}

{{/* The servers whose certificates the chart generates, separated by spaces. */}}
{{- define "weir.generatedCertificates" -}}
{{- $run := dict "proxy" true "controller" true "console" .Values.console.enabled "redis" .Values.redis.bundled -}}
{{- range $server := list "proxy" "controller" "console" "redis" -}}
{{- if and (get $run $server) (not (include "weir.existingTlsSecret" (dict "root" $ "server" $server))) }} {{ $server }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "weir.adminSecret" -}}
{{- .Values.adminToken.existingSecret | default (printf "%s-admin" (include "weir.fullname" .)) -}}
{{- end }}

{{/* The Secret with the users of the bundled Redis. */}}
{{- define "weir.redisUsersSecret" -}}
{{- .Values.redis.auth.existingSecret | default (printf "%s-redis-users" (include "weir.fullname" .)) -}}
{{- end }}

{{/*
An annotation that restarts a pod if its Redis password or token changes, since both are in its environment. The chart
knows only the values that it generates. With an external Redis nothing uses the generated passwords, so they do not
count.
*/}}
{{- define "weir.secretsChecksum" -}}
{{- include "weir.generate" . -}}
{{- $passwords := .Values.redis.auth.existingSecret | default .Values.generated.passwords -}}
{{- $token := .Values.adminToken.existingSecret | default .Values.generated.token -}}
checksum/secrets: {{ list (ternary $passwords dict .Values.redis.bundled) $token | toJson | sha256sum }}
{{- end }}
