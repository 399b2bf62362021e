export type Labels<Name extends string> = Readonly<Record<Name, string>>;

export interface MetricOptions<Name extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly Name[];
}

export interface HistogramOptions<Name extends string> extends MetricOptions<Name> {
  readonly buckets: readonly number[];
}

export interface Sample<Name extends string> {
  readonly labels: Labels<Name>;
  readonly value: number;
}

export interface CollectedOptions<Name extends string> extends MetricOptions<Name> {
  /**
   * Returns a sample of each current series. A series without a sample has ended. The values of a counter are
   * cumulative.
   */
  collect(): Iterable<Sample<Name>>;
}

export interface HistogramSample<Name extends string> {
  readonly labels: Labels<Name>;
  /** The number of values in each bucket, and at last of the values above all buckets. Not added up over the buckets. */
  readonly counts: readonly number[];
  readonly sum: number;
}

export interface CollectedHistogramOptions<Name extends string> extends HistogramOptions<Name> {
  /** As `collect` of a counter. Samples with equal labels are added up. The buckets of the options are upper bounds. */
  collect(): Iterable<HistogramSample<Name>>;
}

export interface Counter<Name extends string> {
  add(labels: Labels<Name>, amount?: number): void;
  remove(labels: Labels<Name>): void;
}

export interface Gauge<Name extends string> {
  set(labels: Labels<Name>, value: number): void;
  remove(labels: Labels<Name>): void;
}

export interface Histogram<Name extends string> {
  observe(labels: Labels<Name>, value: number): void;
  remove(labels: Labels<Name>): void;
}

export interface Metrics {
  readonly contentType: string;
  counter<Name extends string = never>(options: MetricOptions<Name>): Counter<Name>;
  gauge<Name extends string = never>(options: MetricOptions<Name>): Gauge<Name>;
  histogram<Name extends string = never>(options: HistogramOptions<Name>): Histogram<Name>;
  collectCounter<Name extends string = never>(options: CollectedOptions<Name>): void;
  collectGauge<Name extends string = never>(options: CollectedOptions<Name>): void;
  collectHistogram<Name extends string = never>(options: CollectedHistogramOptions<Name>): void;
  /** Renders all metrics as exposition text. Calls `collect` of each collected metric. */
  render(): Promise<string>;
}
