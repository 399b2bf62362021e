{{/*
The annotations of a Service: one line or two for each that packages/model/src/settings honours. `wrong` is CEL for what is wrong
with VALUE and what is allowed, in the words of the model, or ''. `with`: others that it is judged together with. `quotes`: what is
wrong says itself of what, instead of being said of VALUE.
A test holds both against the same values.
*/}}
{{- define "weir.annotations" -}}
{{- $check := list "health-check" -}}
{{- $tls := list "tls-secret" "tls-passthrough" -}}
{{- $limited := include "weir.cel.whole" (dict "example" "connections such as 1000") -}}
{{- $perClient := include "weir.cel.whole" (dict "example" "connections such as 20") -}}
{{- $bits := include "weir.cel.whole" (dict "example" "bits such as 10M, 1.5G or 1Gi") -}}
{{- $answers := include "weir.cel.ofCheck" (include "weir.cel.answers" .) -}}
{{- dict
  "ignore" (dict "wrong" (include "weir.cel.oneOf" (list "true" "false")))
  "algorithm" (dict "wrong" (include "weir.cel.oneOf" (list "least-connections" "round-robin" "random" "maglev" "first")))
  "connect-timeout" (dict "wrong" (include "weir.cel.duration" (dict "mostSeconds" "300")))
  "drain-timeout" (dict "wrong" (include "weir.cel.duration" (dict "mostSeconds" "86400")))
  "idle-timeout" (dict "wrong" (include "weir.cel.duration" (dict "mostSeconds" "86400")))
  "proxy-protocol" (dict "wrong" (include "weir.cel.oneOf" (list "v1" "v2")) "tcpOnly" "true")
  "tls-passthrough" (dict "wrong" (include "weir.cel.oneOf" (list "true" "false")) "tcpOnly" "VALUE == 'true'")
  "tls-secret" (dict "wrong" (include "weir.cel.tlsSecret" .) "with" (list "tls-passthrough" "tls-ports")
    "tcpOnly" "true" "quotes" "itself")
  "tls-ports" (dict "wrong" (include "weir.cel.tlsPorts" .) "with" $tls "quotes" "itself")
  "client-ca-secret" (dict "wrong" (include "weir.cel.clientCaSecret" .) "with" $tls)
  "hosts" (dict "wrong" (include "weir.cel.hosts" .) "with" $tls "tcpOnly" "true")
  "health-check" (dict "wrong" (include "weir.cel.oneOf" (list "off" "tcp" "http" "https")))
  "health-check-path" (dict "wrong" (include "weir.cel.path" .) "with" $check)
  "health-check-drain-timeout" (dict "with" $check
    "wrong" (include "weir.cel.ofCheck" (include "weir.cel.duration" (dict "mostSeconds" "86400"))))
  "health-check-interval" (dict "wrong" (include "weir.cel.ofCheck" (include "weir.cel.interval" .)) "with" $check)
  "health-check-timeout" (dict "wrong" (include "weir.cel.ofCheck" (include "weir.cel.timeout" .))
    "with" (list "health-check" "health-check-interval"))
  "health-check-healthy" (dict "wrong" $answers "with" $check)
  "health-check-unhealthy" (dict "wrong" $answers "with" $check)
  "max-connections" (dict "wrong" $limited)
  "max-connections-per-client" (dict "wrong" $perClient)
  "in-bits-per-second" (dict "wrong" $bits)
  "out-bits-per-second" (dict "wrong" $bits)
  "pool" (dict "wrong" (include "weir.cel.pool" .))
  "nodes" (dict "wrong" (include "weir.cel.nodes" .))
| toYaml -}}
{{- end }}
