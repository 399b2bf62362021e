import type { Logger } from '../log.ts';
import type { CollectedHistogramOptions, CollectedOptions, HistogramSample, Sample } from './contract.ts';
import type { SeriesCapOptions } from './series-cap.ts';

// Renders metrics in the Prometheus text exposition format 0.0.4.

export function renderHeader(
  { name, help }: { readonly name: string; readonly help: string },
  kind: MetricKind | 'histogram',
): string {
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${kind}\n`;
}

/**
 * Renders labels as `{a="1",b="2"}` in the order of `names`, or as '' if `names` is empty. The text identifies a series
 * of a metric.
 */
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

/** Escapes a label value. Tests first whether escaping is needed, because names of Kubernetes objects never need it. */
function escapeLabelValue(value: string): string {
  if (!ESCAPED_CHARACTERS.test(value)) return value;
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

/** The number of samples or series per chunk. After each chunk the caller may yield to other work of the thread. */
const SERIES_PER_CHUNK = 500;

export type MetricKind = 'counter' | 'gauge';

/** A metric whose values are read from a source at each scrape. It may have tens of thousands of series. */
export interface CollectedMetric extends CollectedOptions<string> {
  readonly kind: MetricKind;
}

export interface RenderOptions {
  readonly cap: SeriesCapOptions;
  readonly log: Logger | undefined;
}

/**
 * Renders a metric in chunks, with the values at the time of the first chunk. Renders no series if the source throws.
 */
export function* renderCollected(metric: CollectedMetric, options: RenderOptions): Generator<string> {
  // Reads the whole source before the first chunk, so that all values are from the same moment.
  const samples = collectSamples(metric, options);
  yield renderHeader(metric, metric.kind);
  const series = new Map<string, number>();
  let remaining = SERIES_PER_CHUNK;
  for (const sample of samples) {
    addSample(series, sample, { metric, ...options });
    remaining -= 1;
    if (remaining > 0) continue;
    remaining = SERIES_PER_CHUNK;
    yield '';
  }
  yield* renderSeries(metric.name, series);
}

function collectSamples<T>(
  metric: { readonly name: string; collect(): Iterable<T> },
  { cap, log }: RenderOptions,
): readonly T[] {
  try {
    return [...metric.collect()];
  } catch (error) {
    // The samples collected before the error are discarded too. If only these samples were rendered, Prometheus would treat the missing
    // series as ended.
    cap.drop(metric.name, 'error');
    log?.warn({ metric: metric.name, err: error }, 'failed to collect metric; dropping its series from this scrape');
    return [];
  }
}

/**
 * Adds a sample. A series may occur only once, so samples with the same labels are merged: a counter adds their values,
 * and a gauge keeps the last value.
 */
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
  let remaining = SERIES_PER_CHUNK;
  for (const [labels, value] of series) {
    text += `${name}${labels} ${renderValue(value)}\n`;
    remaining -= 1;
    if (remaining > 0) continue;
    yield text;
    text = '';
    remaining = SERIES_PER_CHUNK;
  }
  yield `${text}\n`;
}

export interface CollectedHistogram extends CollectedHistogramOptions<string> {
  readonly kind: 'histogram';
}

/**
 * Renders a histogram in chunks, as `renderCollected`. The cap counts the combinations of label values, each of which
 * has one line per bucket.
 */
export function* renderHistogram(metric: CollectedHistogram, options: RenderOptions): Generator<string> {
  const { name, labels: names = [], buckets } = metric;
  const { cap } = options;
  const samples = collectSamples(metric, options);
  yield renderHeader(metric, metric.kind);
  const series = new Map<string, HistogramSample<string>>();
  for (const sample of samples) {
    const key = renderLabels(names, sample.labels);
    const known = series.get(key);
    if (known !== undefined) series.set(key, addHistograms(known, sample));
    else if (series.size < cap.maxSeries) series.set(key, sample);
    else cap.drop(name, 'cap');
  }
  let remaining = SERIES_PER_CHUNK;
  let text = '';
  for (const [key, { labels, counts, sum }] of series) {
    let count = 0;
    for (const [index, bound] of [...buckets, Number.POSITIVE_INFINITY].entries()) {
      count += counts[index] ?? 0;
      text += `${name}_bucket${renderLabels([...names, 'le'], { ...labels, le: renderValue(bound) })} ${count}\n`;
    }
    text += `${name}_sum${key} ${renderValue(sum)}\n${name}_count${key} ${count}\n`;
    remaining -= buckets.length;
    if (remaining > 0) continue;
    yield text;
    text = '';
    remaining = SERIES_PER_CHUNK;
  }
  yield `${text}\n`;
}

function addHistograms(a: HistogramSample<string>, b: HistogramSample<string>): HistogramSample<string> {
  const counts = a.counts.map((count, index) => count + (b.counts[index] ?? 0));
  return { labels: a.labels, counts, sum: a.sum + b.sum };
}
