{{/*
CEL for weir.dev/tls-secret and the annotations that depend on it. Reports the first invalid port; the model reports
every one. `.` is the grammar of the annotation, unless a comment says otherwise.
*/}}

{{/* Takes the grammar of tls-secret. */}}
{{- define "weir.cel.hasTls" -}}
[variables.own[?'weir.dev/tls-secret'].orValue('')].all(secret,
  {{ include "weir.cel.matches" (dict "value" "secret" "grammar" .) }})
&& variables.own[?'weir.dev/tls-passthrough'].orValue('') != 'true'
{{- end }}

{{/* Takes the grammar of backend-tls-ca. */}}
{{- define "weir.cel.hasBackendTls" -}}
variables.hasTls && 'weir.dev/backend-tls-ca' in variables.own
&& [variables.own['weir.dev/backend-tls-ca']].all(secret, {{ include "weir.cel.matches" (dict "value" "secret" "grammar" .) }})
{{- end }}

{{- define "weir.cel.backendCa" -}}
!variables.hasTls ? {{ include "weir.cel.onlyWithTls" . }}
: !variables.hasBackendTls ? {{ include "weir.cel.notAllowed" . }}
: variables.tlsPorts.size() == 0 ? ''
: !('weir.dev/backend-tls-server-name' in variables.own)
? 'can be honoured only with weir.dev/backend-tls-server-name; add that annotation with the name in the certificates of the pods'
: variables.tlsPorts.exists(port, port.?appProtocol.orValue('') in ['https', 'kubernetes.io/wss']) ? ''
: 'is used at no port: TLS is terminated at no port with appProtocol: https or kubernetes.io/wss; set appProtocol, or remove this annotation'
{{- end }}

{{/* An annotation that depends on backend-tls-ca. */}}
{{- define "weir.cel.ofBackendTls" -}}
!variables.hasBackendTls ? 'can be honoured only with a valid weir.dev/backend-tls-ca; add that annotation, or remove this one'
: {{ include "weir.cel.value" . }}
{{- end }}

{{/* CEL: the ports at which TLS is terminated. */}}
{{- define "weir.cel.terminatedPorts" -}}
!variables.hasTls ? []
: 'weir.dev/tls-ports' in variables.own
? [variables.own['weir.dev/tls-ports'].split(',').map(part, part.trim())].map(parts,
  variables.tcp.filter(port, port.port != 80 && parts.exists(part, {{ include "weir.cel.isPort" . }})))[0]
: variables.tcp.filter(port, port.port != 80
  && (port.port == 443 || port.?appProtocol.orValue('') in ['https', 'kubernetes.io/wss']))
{{- end }}

{{- define "weir.cel.onlyWithTls" -}}
'can be honoured only with weir.dev/tls-secret; add that annotation, or remove this one'
{{- end }}

{{- define "weir.cel.tlsSecret" -}}
!{{ include "weir.cel.matches" (dict "value" "VALUE" "grammar" .) }}
? {{ include "weir.cel.quoted" "VALUE" }} + ' ' + {{ include "weir.cel.notAllowed" . }}
: !variables.hasTls
? {{ include "weir.cel.quoted" "VALUE" }} + ' cannot be honoured together with weir.dev/tls-passthrough: "true": TLS is terminated here or passed through, not both; remove one of them'
: 'weir.dev/tls-ports' in variables.own || variables.isUdp ? ''
: [variables.tcp.filter(port, port.port != 80
  && (port.port == 443 || port.?appProtocol.orValue('') in ['https', 'kubernetes.io/wss']))].map(ends,
  ends.size() == 0
  ? {{ include "weir.cel.quoted" "VALUE" }} + ' is used at no port: by default TLS is terminated at 443/TCP only; name other ports in annotation weir.dev/tls-ports'
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
    ? ' is not allowed: port 80 is plain HTTP, never TLS; use another port'
    : ' is neither the number nor the name of a TCP port of the Service; ' + (
      variables.tcp.all(port, port.port == 80) ? 'the Service has no port at which TLS can be terminated'
      : 'use ' + variables.tcp.filter(port, port.port != 80).map(port, string(port.port)
        + (port.?name.orValue('') == '' ? '' : ' (' + port.name + ')')).join(', ') + ', comma separated')))[0])[0]
{{- end }}

{{/* CEL: whether the text `part` is the number or the name of `port`. */}}
{{- define "weir.cel.isPort" -}}
(part == string(port.port) || (part != '' && part == port.?name.orValue('')))
{{- end }}

{{/* CEL: the message if one of the ports `.` (CEL for a list), at which TLS shall be terminated, expects TLS itself; or ''. */}}
{{- define "weir.cel.encrypted" -}}
[variables.hasBackendTls ? [] : ({{ . }}).filter(port, port.?appProtocol.orValue('') in ['https', 'kubernetes.io/wss'])].map(encrypted,
encrypted.size() == 0 ? ''
: 'TLS cannot be terminated at port ' + string(encrypted[0].port) + '/TCP, because appProtocol "' + encrypted[0].appProtocol
+ '" says that the pods expect TLS, and the proxies could not verify the pods; add weir.dev/backend-tls-ca and weir.dev/backend-tls-server-name, use weir.dev/tls-passthrough: "true", or set appProtocol to the protocol that the pods speak without TLS')[0]
{{- end }}

{{- define "weir.cel.clientCaSecret" -}}
!variables.hasTls ? {{ include "weir.cel.onlyWithTls" . }}
: {{ include "weir.cel.value" . }}
{{- end }}

{{- define "weir.cel.httpsRedirect" -}}
!({{ include "weir.cel.isOneOf" . }}) ? {{ include "weir.cel.notAllowed" . }}
: VALUE != 'true' ? ''
: !variables.hasTls ? {{ include "weir.cel.onlyWithTls" . }}
: variables.tlsPorts.size() == 0 || variables.tcp.exists(port, port.port == 80
  && port.?appProtocol.orValue('') in {{ include "weir.cel.httpProtocols" . }}) ? ''
: 'can be honoured only if the Service has a port 80/TCP with appProtocol: http; add the port or its appProtocol, or remove this annotation'
{{- end }}

{{- define "weir.cel.hsts" -}}
!variables.hasTls ? {{ include "weir.cel.onlyWithTls" . }}
: !{{ include "weir.cel.matches" (dict "value" "VALUE" "grammar" .) }} ? {{ include "weir.cel.notAllowed" . }}
: variables.tlsPorts.size() == 0 || variables.tlsPorts.exists(port, port.?appProtocol.orValue('') in {{ include "weir.cel.httpProtocols" . }} + ['https', 'kubernetes.io/wss']) ? ''
: 'can be honoured only if TLS is terminated at a port with appProtocol: http; set appProtocol, or remove this annotation'
{{- end }}
