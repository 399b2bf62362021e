{{/*
The Secrets of a release: those that exist already, as the values name them, and else those that the chart makes (_generated.tpl).
*/}}

{{/* The Secret that the operator has for a server: {root, server}; empty: the chart makes one. */}}
{{- define "weir.existingTlsSecret" -}}
{{- $values := .root.Values -}}
{{- $servers := dict "proxy" $values.proxy.admin "controller" $values.controller.admin "console" $values.console "redis" $values.redis -}}
{{- (get $servers .server).tls.existingSecret -}}
{{- end }}

{{/* The Secret with the certificate of a server: {root, server}. */}}
{{- define "weir.tlsSecret" -}}
{{- include "weir.existingTlsSecret" . | default (printf "%s-%s-tls" (include "weir.fullname" .root) .server) -}}
{{- end }}

{{/* Whose certificates the chart makes, with blanks between them. */}}
{{- define "weir.ownCertificates" -}}
{{- $run := dict "proxy" true "controller" true "console" .Values.console.enabled "redis" .Values.redis.bundled -}}
{{- range $server := list "proxy" "controller" "console" "redis" -}}
{{- if and (get $run $server) (not (include "weir.existingTlsSecret" (dict "root" $ "server" $server))) }} {{ $server }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "weir.adminSecret" -}}
{{- .Values.adminToken.existingSecret | default (printf "%s-admin" (include "weir.fullname" .)) -}}
{{- end }}

{{/* Of the bundled Redis. */}}
{{- define "weir.redisUsersSecret" -}}
{{- .Values.redis.auth.existingSecret | default (printf "%s-redis-users" (include "weir.fullname" .)) -}}
{{- end }}

{{/*
Of a pod whose Redis password and token are in its environment: with other ones it starts anew, as far as the chart knows them. The
passwords count only where they are kept: beside an external Redis nobody uses them.
*/}}
{{- define "weir.secretsChecksum" -}}
{{- include "weir.generate" . -}}
{{- $passwords := .Values.redis.auth.existingSecret | default .Values.generated.passwords -}}
{{- $token := .Values.adminToken.existingSecret | default .Values.generated.token -}}
checksum/secrets: {{ list (ternary $passwords dict .Values.redis.bundled) $token | toJson | sha256sum }}
{{- end }}
