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
  /** All series as they are now; those that are no longer among them disappear. For a counter the values are cumulative. */
  collect(): Iterable<Sample<Name>>;
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
  /** The exposition text of all metrics; those that are collected are read now. */
  render(): Promise<string>;
}
