// A metric that is read from its source when Prometheus asks. It may have tens of thousands of series, and the thread that is asked
// has other things to do: so it is written in pieces, between which the caller can let others have their turn.
import type { Logger } from '../log.ts';
import type { CapOptions } from './capped.ts';
import type { CollectedOptions, Sample } from './contract.ts';
import { headOf, labelText, type MetricKind, valueText } from './exposition.ts';

const SERIES_PER_PIECE = 500;

export interface CollectedMetric extends CollectedOptions<string> {
  readonly kind: MetricKind;
}

export interface WriteOptions {
  readonly cap: CapOptions;
  readonly log: Logger | undefined;
}

/** The text of the metric as its source is when the first piece is asked for. One broken source does not cost the others their scrape. */
export function* textOf(metric: CollectedMetric, options: WriteOptions): Generator<string> {
  // At once: a source that is read over several turns would tell of several moments.
  const samples = samplesOf(metric, options);
  yield headOf(metric, metric.kind);
  const series = new Map<string, number>();
  let left = SERIES_PER_PIECE;
  for (const sample of samples) {
    put(series, sample, { metric, ...options });
    left -= 1;
    if (left > 0) continue;
    left = SERIES_PER_PIECE;
    yield '';
  }
  yield* linesOf(metric.name, series);
}

function samplesOf(metric: CollectedMetric, { cap, log }: WriteOptions): readonly Sample<string>[] {
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
function put(
  series: Map<string, number>,
  { labels, value }: Sample<string>,
  { metric, cap }: WriteOptions & { readonly metric: CollectedMetric },
): void {
  const key = labelText(metric.labels ?? [], labels);
  const known = series.get(key);
  if (known !== undefined) series.set(key, metric.kind === 'counter' ? known + value : value);
  else if (series.size < cap.maxSeries) series.set(key, value);
  else cap.drop(metric.name, 'cap');
}

function* linesOf(name: string, series: ReadonlyMap<string, number>): Generator<string> {
  let text = '';
  let left = SERIES_PER_PIECE;
  for (const [labels, value] of series) {
    text += `${name}${labels} ${valueText(value)}\n`;
    left -= 1;
    if (left > 0) continue;
    yield text;
    text = '';
    left = SERIES_PER_PIECE;
  }
  yield `${text}\n`;
}
