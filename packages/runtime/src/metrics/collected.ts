// A metric that is read from its source when Prometheus asks. It may have tens of thousands of series, and the thread that is asked
// has other things to do: so it is written in pieces, between which the caller can let others have their turn.
import type { Logger } from '../log.ts';
import type { SeriesCapOptions } from './capped.ts';
import type { CollectedOptions, Sample } from './contract.ts';
import { type MetricKind, renderHeader, renderLabels, renderValue } from './exposition.ts';

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
