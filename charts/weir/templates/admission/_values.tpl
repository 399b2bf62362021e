{{/*
CEL for each kind of annotation value in annotation-grammar.yaml: '' if VALUE matches, otherwise the message about
VALUE.
*/}}

{{- define "weir.cel.value" -}}
{{- if eq .kind "one-of" -}}
{{- include "weir.cel.isOneOf" . }}
{{- else if eq .kind "duration" -}}
{{- include "weir.cel.isDuration" (dict "value" "VALUE" "grammar" . "max" (int64 .maxMs | toString)) }}
{{- else if eq .kind "integer" -}}
VALUE.matches('^[0-9]{1,2}$') && int(VALUE) >= {{ int64 .min }} && int(VALUE) <= {{ int64 .max }}
{{- else if eq .kind "quantity" -}}
{{- include "weir.cel.isWhole" . }}
{{- else if eq .kind "pattern" -}}
{{- include "weir.cel.matches" (dict "value" "VALUE" "grammar" .) }}
{{- else -}}
{{- fail (printf "unknown kind %q in annotation-grammar.yaml" .kind) -}}
{{- end }}
? '' : {{ include "weir.cel.notAllowed" . }}
{{- end }}

{{/* CEL: whether VALUE is one of the values of the grammar `.`. */}}
{{- define "weir.cel.isOneOf" -}}
VALUE in ['{{ join "', '" .values }}']
{{- end }}

{{/* CEL: the message about a value that does not match the grammar `.`. */}}
{{- define "weir.cel.notAllowed" -}}
'is not allowed; use {{ .expected }}'
{{- end }}

{{/* CEL: whether `.value`, a CEL string, matches the pattern of `.grammar`. */}}
{{- define "weir.cel.matches" -}}
({{ .value }}.size() <= {{ int64 .grammar.maxLength }} && {{ .value }}.matches('{{ .grammar.pattern }}'))
{{- end }}

{{/* CEL: the milliseconds of `.`, a CEL string with a valid duration: the sum of its parts, each a number with a unit. */}}
{{- define "weir.cel.milliseconds" -}}
{{ . }}.findAll('[0-9]+[a-z]+').map(part, int(part.find('^[0-9]+'))
  * {'d': 86400000, 'h': 3600000, 'm': 60000, 's': 1000, 'ms': 1}[part.find('[a-z]+$')]).sum()
{{- end }}

{{/* CEL: whether `.value` is a duration of `.grammar` and at most `.max`, a CEL integer in milliseconds. */}}
{{- define "weir.cel.isDuration" -}}
({{ .value }} != '' && {{ .value }}.matches('{{ .grammar.pattern }}')
&& [{{ include "weir.cel.milliseconds" .value }}].all(ms, ms >= {{ int64 .grammar.minMs }} && ms <= {{ .max }}))
{{- end }}

{{/*
Whether VALUE is a Quantity that is whole and at most 2^53 - 1, exactly (binary quantities with more than ten decimal
places are admitted). Takes the digits without leading zeros and the decimal places without trailing zeros. A decimal
quantity is whole if its trailing zeros and its exponent make up for the places; a binary quantity is whole if 5 to the
power of the places divides the digits, since there are always enough factors of 2.
*/}}
{{- define "weir.cel.isWhole" -}}
VALUE.size() <= {{ int64 .maxLength }}
&& VALUE.matches('^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?$')
&& !quantity(VALUE).isGreaterThan(quantity('9007199254740991'))
&& [VALUE.find('[0-9]*[.]?[0-9]*')].all(number,
  [number.contains('.') ? number.split('.')[1].find('^[0-9]*[1-9]') : ''].all(places,
  [(number.split('.')[0] + places).find('[1-9].*$')].all(digits,
  [VALUE.find('[a-zA-Z].*$')].all(unit,
    digits == '' || places == '' && !(unit in ['n', 'u', 'm']) && !unit.matches('^[eE]-')
    || (unit.endsWith('i')
      ? places.size() > 10 || digits.size() > 18
        || int(digits) % [1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125, 9765625][places.size()] == 0
      : digits.size() - digits.find('^[0-9]*[1-9]').size() - places.size() + (
        unit in {'': 0, 'n': -9, 'u': -6, 'm': -3, 'k': 3, 'M': 6, 'G': 9, 'T': 12, 'P': 15, 'E': 18}
        ? {'': 0, 'n': -9, 'u': -6, 'm': -3, 'k': 3, 'M': 6, 'G': 9, 'T': 12, 'P': 15, 'E': 18}[unit]
        : int(unit.substring(1))) >= 0)))))
{{- end }}

{{/* CEL: the message about a comma-separated list of hosts. Takes the grammar of hosts. */}}
{{- define "weir.cel.hosts" -}}
[VALUE.split(',').size()].map(count, count > {{ int64 .maxCount }}
? 'is not allowed: ' + string(count) + ' hosts are too many: a Service may have at most {{ int64 .maxCount }}; use wildcards such as *.example.com, or make several Services'
: [VALUE.split(',').map(text, text.trim()).filter(host,
  host.size() > {{ int64 .maxLength }}
  || !host.lowerAscii().matches('{{ .pattern }}')
  || host.matches('{{ .forbiddenPattern }}'))].map(wrong,
  wrong.size() > 0
  ? 'is not allowed: ' + {{ include "weir.cel.quoted" "wrong[0]" }} + ' is not a host; use {{ .expected }}'
  : variables.own[?'weir.dev/tls-passthrough'].orValue('') == 'true' || variables.hasTls || variables.hasHttp ? ''
  : 'can be honoured only where the proxies can read the host that a client asks for; set appProtocol: http at a TCP port, add weir.dev/tls-passthrough: "true" or weir.dev/tls-secret, or remove this annotation')[0])[0]
{{- end }}

{{/* CEL: `.`, a CEL string that a tenant wrote, in quotes and truncated. */}}
{{- define "weir.cel.quoted" -}}
'"' + ({{ . }}.size() <= 80 ? {{ . }} : {{ . }}.substring(0, 80) + '…') + '"'
{{- end }}
