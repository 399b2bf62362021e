// The text that Prometheus reads (exposition format 0.0.4).

export type MetricKind = 'counter' | 'gauge';

export function headOf({ name, help }: { readonly name: string; readonly help: string }, kind: MetricKind): string {
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${kind}\n`;
}

/** `{a="1",b="2"}`, in the order of `names`; empty without labels. What tells two series of a metric apart. */
export function labelText(names: readonly string[], labels: Readonly<Record<string, string>>): string {
  let text = '';
  for (const name of names) text += `${text === '' ? '{' : ','}${name}="${escaped(labels[name] ?? '')}"`;
  return text === '' ? '' : `${text}}`;
}

export function valueText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}

const SPECIAL = /[\\\n"]/;

/** Nearly no value needs it: names of Kubernetes do not. */
function escaped(value: string): string {
  if (!SPECIAL.test(value)) return value;
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}
