// The text that Prometheus reads (exposition format 0.0.4).

export type MetricKind = 'counter' | 'gauge';

export function renderHeader(
  { name, help }: { readonly name: string; readonly help: string },
  kind: MetricKind,
): string {
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${kind}\n`;
}

/** `{a="1",b="2"}`, in the order of `names`; empty without labels. What tells two series of a metric apart. */
export function renderLabels(names: readonly string[], labels: Readonly<Record<string, string>>): string {
  let text = '';
  for (const name of names) text += `${text === '' ? '{' : ','}${name}="${escapeLabelValue(labels[name] ?? '')}"`;
  return text === '' ? '' : `${text}}`;
}

export function renderValue(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}

const ESCAPED_CHARACTERS = /[\\\n"]/;

/** Nearly no value needs it: names of Kubernetes do not. */
function escapeLabelValue(value: string): string {
  if (!ESCAPED_CHARACTERS.test(value)) return value;
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}
