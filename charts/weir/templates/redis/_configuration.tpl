{{- define "weir.redisConfiguration" -}}
port 0
tls-port 6379
tls-cert-file /tls/tls.crt
tls-key-file /tls/tls.key
tls-ca-cert-file /tls/ca.crt
tls-auth-clients no
aclfile /users/users.acl
dir /data
appendonly yes
save ""
# Evicting a key would remove a part of the routing table.
maxmemory-policy noeviction
maxmemory {{ .Values.redis.maxMemory }}
{{- end }}

{{/*
One Redis user per kind of process, with the rights that it needs (docs/redis.md). If the values name a Secret with the
passwords, "#(USER)" is a placeholder for each password, which the init container of Redis replaces.
*/}}
{{- define "weir.redisUsers" -}}
{{- include "weir.generate" . -}}
{{- $own := printf "weir:{%s}:" (include "weir.fleet" .) -}}
{{- $commands := "+@read +@write +@scripting +@transaction +@connection -@dangerous -scan -randomkey +info +time" -}}
{{- $keys := dict
  "controller" (list "~" "*")
  "proxy" (list "%R~" "meta" "%R~" "table" "%R~" "keys" "%R~" "changes" "%R~" "cutoff*" "~" "lives" "~" "proxies" "~" "proxy:*" "~" "usage:*" "~" "lease*")
  "console" (list "%R~" "meta" "%R~" "table" "%R~" "changes" "%R~" "lives" "%R~" "proxies" "%R~" "proxy:*" "%R~" "usage:*" "%R~" "lease*" "~" "cutoff*") -}}
user default off
user weir-probe on nopass -@all +ping
{{- range $user, $rights := $keys }}
{{- $password := printf "(%s)" $user }}
{{- if not $.Values.redis.auth.existingSecret }}
{{- $password = get $.Values.generated.passwords $user | sha256sum }}
{{- end }}
user weir-{{ $user }} on #{{ $password }} {{ $commands }}
{{- range $pair := chunk 2 $rights }} {{ first $pair }}{{ $own }}{{ last $pair }}{{ end }}
{{- end }}
{{- end }}
