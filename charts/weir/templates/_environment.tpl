{{/* The environment with which a process connects to Redis. Takes {root, process}. */}}
{{- define "weir.redisEnvironment" -}}
{{- $values := .root.Values -}}
{{- $name := include "weir.fullname" .root -}}
- name: WEIR_FLEET
  value: {{ include "weir.fleet" .root | quote }}
{{- if $values.redis.bundled }}
- name: WEIR_REDIS_URL
  value: rediss://{{ $name }}-redis.{{ .root.Release.Namespace }}.svc:6379
- name: WEIR_REDIS_CA
  value: /redis/ca.crt
- name: WEIR_REDIS_USERNAME
  value: weir-{{ .process }}
- name: WEIR_REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "weir.redisUsersSecret" .root }}, key: {{ .process }}-password}}
{{- else }}
{{- if contains "@" $values.redis.external.url }}
{{- fail "redis.external.url contains a user or a password, which everybody who may read pods would see; put them into a Secret and set redis.external.existingSecret to its name" }}
{{- end }}
- name: WEIR_REDIS_URL
  value: {{ required "redis.bundled is false, but redis.external.url is empty; set redis.external.url to the URL of your Redis" $values.redis.external.url | quote }}
{{- with $values.redis.external.existingSecret }}
{{- if $values.redis.external.ownCa }}
- name: WEIR_REDIS_CA
  value: /redis/ca.crt
{{- end }}
- name: WEIR_REDIS_USERNAME
  valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $.process }}-username, optional: true}}
- name: WEIR_REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $.process }}-password, optional: true}}
{{- if contains "sentinel" $values.redis.external.url }}
- name: WEIR_REDIS_SENTINEL_USERNAME
  valueFrom: {secretKeyRef: {name: {{ . }}, key: sentinel-username, optional: true}}
- name: WEIR_REDIS_SENTINEL_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ . }}, key: sentinel-password, optional: true}}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The name of the Secret whose ca.crt verifies Redis; empty for public CAs or without TLS. */}}
{{- define "weir.redisCaSecret" -}}
{{- if .Values.redis.bundled -}}
{{ include "weir.tlsSecret" (dict "root" . "server" "redis") }}
{{- else if .Values.redis.external.ownCa -}}
{{ required "redis.external.ownCa is true, but redis.external.existingSecret is empty; set it to the name of a Secret that contains ca.crt" .Values.redis.external.existingSecret }}
{{- end -}}
{{- end }}

{{- define "weir.redisMount" -}}
{{- if include "weir.redisCaSecret" . }}
- {name: redis-ca, mountPath: /redis, readOnly: true}
{{- end }}
{{- end }}

{{- define "weir.redisVolume" -}}
{{- with include "weir.redisCaSecret" . }}
- name: redis-ca
  secret: {secretName: {{ . }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- end }}

{{/* The secret that seals private keys, and from which the proxies derive the values of sticky cookies. */}}
{{- define "weir.fleetSecretEnvironment" -}}
- name: WEIR_FLEET_SECRET
  valueFrom: {secretKeyRef: {name: {{ .Values.tls.fleetSecret | default (printf "%s-fleet" (include "weir.fullname" .)) }}, key: secret}}
{{- end }}

{{/* The admin server for probes and metrics: TLS, and the token of the release. */}}
{{- define "weir.adminEnvironment" -}}
- name: WEIR_ADMIN_TLS
  value: /admin
- name: WEIR_ADMIN_TOKEN
  valueFrom: {secretKeyRef: {name: {{ include "weir.adminSecret" . }}, key: token}}
{{- end }}
