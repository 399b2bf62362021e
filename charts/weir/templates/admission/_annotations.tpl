{{/* The grammar of all annotations: generated from packages/model/src/settings, see annotation-grammar.yaml. */}}
{{- define "weir.annotations.grammar" -}}
{{- .Files.Get "annotation-grammar.yaml" -}}
{{- end }}

{{/*
How the admission policy judges each annotation. `wrong` is a CEL expression: the message about VALUE in the same words
as the model, or '' if VALUE is valid; by default it comes from the grammar. `with` names annotations whose values this
annotation depends on. `tcpOnly` is a CEL expression for whether the annotation requires a TCP port. With `quotes` the
message quotes a part of VALUE itself, so VALUE is not put before it. A test compares the policy with the model for the
same values.
*/}}
{{- define "weir.annotations" -}}
{{- $grammar := include "weir.annotations.grammar" . | fromYaml -}}
{{- $check := list "health-check" -}}
{{- $tls := list "tls-secret" "tls-passthrough" -}}
{{- $tlsPorts := append $tls "tls-ports" -}}
{{- $rules := dict
  "proxy-protocol" (dict "tcpOnly" "true")
  "tls-passthrough" (dict "tcpOnly" "VALUE == 'true'")
  "tls-secret" (dict "wrong" (include "weir.cel.tlsSecret" (index $grammar "tls-secret")) "with" (list "tls-passthrough" "tls-ports" "backend-tls-ca")
    "tcpOnly" "true" "quotes" "itself")
  "tls-ports" (dict "wrong" (include "weir.cel.tlsPorts" .) "with" (append $tls "backend-tls-ca") "quotes" "itself")
  "backend-tls-ca" (dict "wrong" (include "weir.cel.backendCa" (index $grammar "backend-tls-ca")) "with" (append $tlsPorts "backend-tls-server-name"))
  "backend-tls-server-name" (dict "wrong" (include "weir.cel.ofBackendTls" (index $grammar "backend-tls-server-name")) "with" (append $tls "backend-tls-ca"))
  "backend-tls-secret" (dict "wrong" (include "weir.cel.ofBackendTls" (index $grammar "backend-tls-secret")) "with" (append $tls "backend-tls-ca"))
  "client-ca-secret" (dict "wrong" (include "weir.cel.clientCaSecret" (index $grammar "client-ca-secret")) "with" $tls)
  "https-redirect" (dict "wrong" (include "weir.cel.httpsRedirect" (index $grammar "https-redirect")) "with" $tlsPorts)
  "hsts-max-age" (dict "wrong" (include "weir.cel.hsts" (index $grammar "hsts-max-age")) "with" $tlsPorts)
  "hosts" (dict "wrong" (include "weir.cel.hosts" (index $grammar "hosts")) "with" $tls "tcpOnly" "true")
  "path-prefix" (dict "wrong" (include "weir.cel.pathPrefix" (index $grammar "path-prefix")) "with" (list "tls-passthrough"))
  "strip-prefix" (dict "wrong" (include "weir.cel.stripPrefix" $grammar) "with" (list "path-prefix" "tls-passthrough"))
  "access-log" (dict "wrong" (include "weir.cel.accessLog" (index $grammar "access-log")) "with" (list "tls-passthrough"))
  "health-check-path" (dict "wrong" (include "weir.cel.path" (index $grammar "health-check-path")) "with" $check)
  "health-check-timeout" (dict "wrong" (include "weir.cel.ofCheck" (include "weir.cel.timeout" (index $grammar "health-check-timeout")))
    "with" (list "health-check" "health-check-interval"))
-}}
{{- range $name := list "health-check-drain-timeout" "health-check-interval" "health-check-healthy" "health-check-unhealthy" -}}
{{- $wrong := include "weir.cel.ofCheck" (include "weir.cel.value" (index $grammar $name)) -}}
{{- $_ := set $rules $name (dict "wrong" $wrong "with" $check) -}}
{{- end -}}
{{- range $name := list "request-timeout" "max-body-size" "requests-per-second" "sticky-cookie" "error-pages" -}}
{{- $wrong := include "weir.cel.ofHttp" (include "weir.cel.value" (index $grammar $name)) -}}
{{- $_ := set $rules $name (dict "wrong" $wrong "with" (list "tls-passthrough")) -}}
{{- end -}}
{{- range $name, $value := $grammar -}}
{{- $rule := index $rules $name | default dict -}}
{{- if not $rule.wrong -}}
{{- $_ := set $rule "wrong" (include "weir.cel.value" $value) -}}
{{- end -}}
{{- $_ := set $rules $name $rule -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end }}
