{{/*
CEL for the ports at which the proxies relay HTTP requests, and for the annotations that need such a port.
*/}}

{{/* CEL: the values of appProtocol for pods that speak HTTP without TLS. */}}
{{- define "weir.cel.httpProtocols" -}}
['http', 'kubernetes.io/ws', 'kubernetes.io/h2c', 'grpc']
{{- end }}

{{- define "weir.cel.hasHttp" -}}
variables.tcp.exists(port, port.?appProtocol.orValue('') in {{ include "weir.cel.httpProtocols" . }}
&& (port.port == 80 || variables.own[?'weir.dev/tls-passthrough'].orValue('') != 'true'))
|| variables.tlsPorts.exists(port, port.?appProtocol.orValue('') in ['https', 'kubernetes.io/wss'])
{{- end }}

{{/* CEL: whether `.value`, a CEL string, is a path prefix of `.grammar`. */}}
{{- define "weir.cel.isPathPrefix" -}}
({{ include "weir.cel.matches" . }} && !{{ .value }}.matches('{{ .grammar.forbiddenPattern }}'))
{{- end }}

{{/* Takes the grammar of path-prefix. */}}
{{- define "weir.cel.pathPrefix" -}}
!{{ include "weir.cel.isPathPrefix" (dict "value" "VALUE" "grammar" .) }}
? {{ include "weir.cel.notAllowed" . }}
: {{ include "weir.cel.needsHttp" . }}
{{- end }}

{{- define "weir.cel.needsHttp" -}}
variables.hasHttp ? ''
: 'can be honoured only at a port where the proxies read HTTP requests; set appProtocol: http at a TCP port, or remove this annotation'
{{- end }}

{{/* Takes the CEL expression for the message about VALUE. */}}
{{- define "weir.cel.ofHttp" -}}
[{{ . }}].map(message, message != '' ? message : {{ include "weir.cel.needsHttp" . }})[0]
{{- end }}

{{/* Takes the grammar of all annotations. */}}
{{- define "weir.cel.stripPrefix" -}}
VALUE == 'true' && !(variables.hasHttp && [variables.own[?'weir.dev/path-prefix'].orValue('')].all(prefix,
  {{ include "weir.cel.isPathPrefix" (dict "value" "prefix" "grammar" (index . "path-prefix")) }}))
? 'can be honoured only with a valid weir.dev/path-prefix; add that annotation, or remove this one'
: {{ include "weir.cel.value" (index . "strip-prefix") }}
{{- end }}

{{/* Takes the grammar of access-log. */}}
{{- define "weir.cel.accessLog" -}}
!{{ include "weir.cel.matches" (dict "value" "VALUE" "grammar" .) }}
? {{ include "weir.cel.notAllowed" . }}
: !VALUE.endsWith(',query') ? ''
: {{ include "weir.cel.needsHttp" . }}
{{- end }}
