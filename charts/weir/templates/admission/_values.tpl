{{/* CEL for the kinds of values that annotations have: what is wrong with VALUE, or ''. */}}

{{- define "weir.cel.oneOf" -}}
VALUE in ['{{ join "', '" . }}'] ? '' : 'is not allowed; use one of {{ join ", " . }}'
{{- end }}

{{/* Milliseconds of `.`, CEL for a text that is known to be a duration. */}}
{{- define "weir.cel.milliseconds" -}}
int({{ . }}.find('^[0-9]+')) * (
  {{ . }}.endsWith('ms') ? 1 : {{ . }}.endsWith('s') ? 1000 : {{ . }}.endsWith('m') ? 60000 : 3600000)
{{- end }}

{{/* Whether `.value` is a duration of at least `.least` and at most `.most`, both CEL for milliseconds. */}}
{{- define "weir.cel.isDuration" -}}
({{ .value }}.matches('^[0-9]{1,9}(ms|s|m|h)$')
&& [{{ include "weir.cel.milliseconds" .value }}].all(ms, ms >= {{ .least }} && ms <= {{ .most }}))
{{- end }}

{{- define "weir.cel.duration" -}}
{{- include "weir.cel.isDuration" (dict "value" "VALUE" "least" "1" "most" (printf "%s000" .mostSeconds)) }} ? ''
: 'is not allowed; use a duration from 1ms to {{ .mostSeconds }}s, such as 5s or 10m'
{{- end }}

{{/*
A Quantity that is whole and at most 2^53 - 1, exactly (but of binary ones with more than ten places, which are let pass). Digits
without leading zeros and the zeros at the end of the fraction; of a decimal one the zeros at the end must make up for the places, of
a binary one 5 to the power of the places must divide the digits: there are enough factors of 2.
*/}}
{{- define "weir.cel.whole" -}}
VALUE.size() <= 40
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
? '' : 'is not allowed; use a whole number of {{ .example }}'
{{- end }}

{{- define "weir.cel.pool" -}}
VALUE.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') ? ''
: 'is not allowed; use the name of a node pool: at most 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit'
{{- end }}

{{- define "weir.cel.nodes" -}}
VALUE.matches('^[0-9]{1,2}$') && int(VALUE) >= 1 && int(VALUE) <= 16 ? ''
: 'is not allowed; use a whole number from 1 to 16'
{{- end }}

{{- define "weir.cel.hosts" -}}
[VALUE.split(',').size()].map(count, count > 1000
? 'is not allowed: ' + string(count) + ' hosts are too many: a Service may have at most 1000; use wildcards such as *.example.com, or make several Services'
: [VALUE.split(',').map(text, text.trim()).filter(host,
  host.size() > 253
  || !host.lowerAscii().matches('^([*][.])?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$')
  || host.matches('(^|[.])[0-9]+$'))].map(wrong,
  wrong.size() > 0
  ? 'is not allowed: ' + {{ include "weir.cel.quoted" "wrong[0]" }} + ' is no host; use names such as shop.example.com or *.example.com, comma separated, other scripts as xn--…'
  : variables.own[?'weir.dev/tls-passthrough'].orValue('') == 'true' || variables.hasTls ? ''
  : 'can be honoured only with weir.dev/tls-passthrough: "true" or weir.dev/tls-secret; add one of them, or remove this annotation')[0])[0]
{{- end }}

{{/* `.`, CEL for text that a tenant wrote, in quotes and cut. */}}
{{- define "weir.cel.quoted" -}}
'"' + ({{ . }}.size() <= 80 ? {{ . }} : {{ . }}.substring(0, 80) + '…') + '"'
{{- end }}
