import type { Logger } from '../log.ts';
import type { CollectedOptions, Sample } from './contract.ts';
import type { SeriesCapOptions } from './series-cap.ts';

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

// A metric that is read from its source when Prometheus asks. It may have tens of thousands of series, and the thread that is asked
// has other things to do: so it is written in pieces, between which the caller can let others have their turn.
const SERIES_PER_CHUNK = 500;

export interface CollectedMetric extends CollectedOptions<string> {
  readonly kind: MetricKind;
}

export interface RenderOptions {
  readonly cap: SeriesCapOptions;
  readonly log: Logger | undefined;
}

/** The text of the metric as its source is when the first piece is asked for. One broken source does not cost the others their scrape. */
export function* renderCollected(metric: CollectedMetric, options: RenderOptions): Generator<string> {
  // At once: a source that is read over several turns would tell of several moments.
  const samples = collectSamples(metric, options);
  yield renderHeader(metric, metric.kind);
  const series = new Map<string, number>();
  let left = SERIES_PER_CHUNK;
  for (const sample of samples) {
    addSample(series, sample, { metric, ...options });
    left -= 1;
    if (left > 0) continue;
    left = SERIES_PER_CHUNK;
    yield '';
  }
  yield* renderSeries(metric.name, series);
}

function collectSamples(metric: CollectedMetric, { cap, log }: RenderOptions): readonly Sample<string>[] {
  try {
    return [...metric.collect()];
  } catch (error) {
    // None at all: half of the series would look as if the others had gone.
    cap.drop(metric.name, 'error');
    log?.warn({ metric: metric.name, err: error }, 'metric could not be collected');
    return [];
  }
}

/** Of two samples with the same labels a counter is the sum, and a gauge the last: nothing may be in the text twice. */
function addSample(
  series: Map<string, number>,
  { labels, value }: Sample<string>,
  { metric, cap }: RenderOptions & { readonly metric: CollectedMetric },
): void {
  const key = renderLabels(metric.labels ?? [], labels);
  const known = series.get(key);
  if (known !== undefined) series.set(key, metric.kind === 'counter' ? known + value : value);
  else if (series.size < cap.maxSeries) series.set(key, value);
  else cap.drop(metric.name, 'cap');
}

function* renderSeries(name: string, series: ReadonlyMap<string, number>): Generator<string> {
  let text = '';
  let left = SERIES_PER_CHUNK;
  for (const [labels, value] of series) {
    text += `${name}${labels} ${renderValue(value)}\n`;
    left -= 1;
    if (left > 0) continue;
    yield text;
    text = '';
    left = SERIES_PER_CHUNK;
  }
  yield `${text}\n`;
}
