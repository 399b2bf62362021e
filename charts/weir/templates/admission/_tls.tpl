{{/* CEL for weir.dev/tls-secret and what belongs to it. Of several ports that are wrong the first is told; the model tells all. */}}

{{/* Whether `.`, CEL for a text, may be the name of a Secret (RFC 1123, subdomain). */}}
{{- define "weir.cel.isSecretName" -}}
({{ . }}.size() <= 253 && {{ . }}.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))
{{- end }}

{{- define "weir.cel.hasTls" -}}
[variables.own[?'weir.dev/tls-secret'].orValue('')].all(secret, {{ include "weir.cel.isSecretName" "secret" }})
&& variables.own[?'weir.dev/tls-passthrough'].orValue('') != 'true'
{{- end }}

{{- define "weir.cel.notASecretName" -}}
'is not allowed; use the name of a Secret in the namespace of the Service'
{{- end }}

{{- define "weir.cel.onlyWithTls" -}}
'can be honoured only with weir.dev/tls-secret; add that annotation, or remove this one'
{{- end }}

{{- define "weir.cel.tlsSecret" -}}
!{{ include "weir.cel.isSecretName" "VALUE" }}
? {{ include "weir.cel.quoted" "VALUE" }} + ' ' + {{ include "weir.cel.notASecretName" . }}
: !variables.hasTls
? {{ include "weir.cel.quoted" "VALUE" }} + ' cannot be honoured together with weir.dev/tls-passthrough: "true": TLS ends here or is passed on, not both; remove one of them'
: 'weir.dev/tls-ports' in variables.own || variables.isUdp ? ''
: [variables.tcp.filter(port, port.port != 80
  && (port.port == 443 || port.?appProtocol.orValue('') in ['https', 'kubernetes.io/wss']))].map(ends,
  ends.size() == 0
  ? {{ include "weir.cel.quoted" "VALUE" }} + ' would be used at no port: by itself TLS ends at 443/TCP; name others in annotation weir.dev/tls-ports'
  : {{ include "weir.cel.encrypted" "ends" }})[0]
{{- end }}

{{- define "weir.cel.tlsPorts" -}}
!variables.hasTls ? {{ include "weir.cel.quoted" "VALUE" }} + ' ' + {{ include "weir.cel.onlyWithTls" . }}
: [VALUE.split(',').map(part, part.trim())].map(parts,
  [parts.filter(part, !variables.tcp.exists(port, {{ include "weir.cel.isPort" . }} && port.port != 80))].map(wrong,
  wrong.size() == 0
  ? {{ include "weir.cel.encrypted" (printf "variables.tcp.filter(port, parts.exists(part, %s))" (include "weir.cel.isPort" .)) }}
  : {{ include "weir.cel.quoted" "wrong[0]" }} + (
    variables.tcp.exists(port, [wrong[0]].exists(part, {{ include "weir.cel.isPort" . }}))
    ? ' is not allowed: port 80 is plain HTTP, and TLS never ends there; use another port'
    : ' is no TCP port of the Service, by number or name; ' + (
      variables.tcp.all(port, port.port == 80) ? 'it has none where TLS could end'
      : 'use ' + variables.tcp.filter(port, port.port != 80).map(port, string(port.port)
        + (port.?name.orValue('') == '' ? '' : ' (' + port.name + ')')).join(', ') + ', comma separated')))[0])[0]
{{- end }}

{{/* Whether the text `part` means `port`. */}}
{{- define "weir.cel.isPort" -}}
(part == string(port.port) || (part != '' && part == port.?name.orValue('')))
{{- end }}

{{/* Of the ports `.`, CEL for a list, at which TLS is to end. */}}
{{- define "weir.cel.encrypted" -}}
[({{ . }}).filter(port, port.?appProtocol.orValue('') in ['https', 'kubernetes.io/wss'])].map(encrypted,
encrypted.size() == 0 ? ''
: 'TLS cannot end at port ' + string(encrypted[0].port) + '/TCP, where appProtocol "' + encrypted[0].appProtocol
+ '" says that the pods expect TLS, too: this version encrypts nothing toward them; use weir.dev/tls-passthrough: "true", or the appProtocol that they speak without TLS')[0]
{{- end }}

{{- define "weir.cel.clientCaSecret" -}}
!variables.hasTls ? {{ include "weir.cel.onlyWithTls" . }}
: {{ include "weir.cel.isSecretName" "VALUE" }} ? '' : {{ include "weir.cel.notASecretName" . }}
{{- end }}
