import type { OpenLoopReport } from '../load/generators.ts';
import type { TrafficBounds } from '../measure/traffic-bounds.ts';
import { logProgress } from '../report/run-metadata.ts';
import type { SubjectName } from '../subjects/subject.ts';
import type { Reading, ScenarioReadings } from './comparison-result.ts';
import type { ComparisonRun } from './comparison-run.ts';
import { MeasuredSubject } from './measured-subject.ts';
import { measureRounds } from './rounds.ts';

/** Messages that are sent at a fixed rate, and answered by the backend. */
export type OpenLoop<Backend extends string> = {
  readonly backend: Backend;
  /** What is sent, in the plural. */
  readonly unit: 'messages' | 'requests';
  /** Subjects that are not measured, because they do not sustain the rate. */
  readonly tooSlow?: readonly SubjectName[];
  run(port: number, options: { readonly rate: number; readonly seconds: number }): Promise<OpenLoopReport>;
  trafficOf(report: OpenLoopReport): TrafficBounds;
};

const MAX_REFERENCE_P99_MS = 10;
type LatencyReading = { readonly p50: Reading; readonly p99: Reading };

/**
 * Measures the latency of an open loop at one rate for all subjects. The rate is half of the highest rate that the reference subject
 * sustains with a 99th percentile below 10 ms. The reference subject is HAProxy if selected, otherwise the first subject.
 */
export async function measureLatency<Backend extends string, Name extends SubjectName>(
  run: ComparisonRun<Backend, Name>,
  openLoop: OpenLoop<Backend>,
): Promise<ScenarioReadings[]> {
  const running = await run.sharedSubjects(openLoop.backend);
  const selected = running.filter(({ subject }) => openLoop.tooSlow?.includes(subject.name) !== true);
  const reference = selected.find(({ subject }) => subject.name === 'haproxy') ?? selected[0];
  if (reference === undefined) return [];
  const rate = Math.round((await findHighestRateThrough(reference, { openLoop, signal: run.options.signal })) / 2);
  const title = `latency at ${rate} ${openLoop.unit} a second`;
  const readings = await measureRounds<Backend, LatencyReading>(run, {
    title,
    subjects: [...selected, new MeasuredSubject(run.options.direct, run.options.checks)],
    measure: (subject) => measureOnce(subject, openLoop, { rate, seconds: run.options.seconds }),
    format: ({ p50, p99 }) => `${p50.figure.toFixed(0)} / ${p99.figure.toFixed(0)}`,
  });
  return latencyReadings(title, readings);
}

/** Finds the highest rate that the subject sustains. A rate gets a second try, because another process may disturb the first try. */
function findHighestRateThrough<Backend extends string>(
  reference: MeasuredSubject<Backend>,
  { openLoop, signal }: { readonly openLoop: OpenLoop<Backend>; readonly signal: AbortSignal },
): Promise<number> {
  const isSustained = async (rate: number): Promise<boolean> => {
    signal.throwIfAborted();
    const report = await runOnce(reference, openLoop, { rate, seconds: 1 });
    const p99Ms = report.kind === 'measured' ? report.p99 / 1000 : Number.POSITIVE_INFINITY;
    logProgress(
      `latency: ${rate} ${openLoop.unit} a second through ${reference.subject.name}: p99 ${p99Ms.toFixed(1)} ms`,
    );
    return p99Ms < MAX_REFERENCE_P99_MS;
  };
  return findHighestRate(async (rate) => (await isSustained(rate)) || (await isSustained(rate)), {
    from: 2_000,
    upTo: 1_000_000,
  });
}

/**
 * Returns the readings of three scenarios. The target for the median applies to the added latency: the median of a subject minus the
 * median without a proxy in the same round. The target for the 99th percentile applies to the subject's own percentile, because 99th
 * percentiles of two measurements cannot be subtracted.
 */
export function latencyReadings(
  title: string,
  readings: ReadonlyMap<SubjectName, readonly LatencyReading[]>,
): ScenarioReadings[] {
  const readingsOf = (percentile: keyof LatencyReading): [SubjectName, Reading[]][] =>
    [...readings].map(([name, list]) => [name, list.map((reading) => reading[percentile])]);
  const direct = readings.get('direct') ?? [];
  const added = readingsOf('p50')
    .filter(([name]) => name !== 'direct')
    .map(([name, list]) => [name, list.map((reading, round) => subtractReading(reading, direct[round]?.p50))]);
  return [
    { name: title, unit: 'µs, p50', targets: {}, readings: Object.fromEntries(readingsOf('p50')) },
    { name: 'added latency', unit: 'µs, p50', targets: { haproxy: 1.1 }, readings: Object.fromEntries(added) },
    { name: title, unit: 'µs, p99', targets: { haproxy: 1.5 }, readings: Object.fromEntries(readingsOf('p99')) },
  ];
}

/** Subtracts the figure of `base`. Returns a figure of at least 1 µs, because latencies are measured in steps of 1 µs. */
function subtractReading(reading: Reading, base: Reading | undefined): Reading {
  return { ...reading, figure: Math.max(1, reading.figure - (base?.figure ?? 0)) };
}

type Rate = { readonly rate: number; readonly seconds: number };

async function measureOnce<Backend extends string>(
  subject: MeasuredSubject<Backend>,
  openLoop: OpenLoop<Backend>,
  options: Rate,
): Promise<LatencyReading> {
  const { value: report, userMs, systemMs } = await subject.withCpuTime(() => runOnce(subject, openLoop, options));
  if (report.kind === 'overloaded') {
    throw new Error(`${subject.subject.name} does not sustain ${options.rate} ${openLoop.unit} a second`);
  }
  return { p50: { userMs, systemMs, figure: report.p50 }, p99: { userMs, systemMs, figure: report.p99 } };
}

async function runOnce<Backend extends string>(
  subject: MeasuredSubject<Backend>,
  { backend, run, trafficOf }: OpenLoop<Backend>,
  options: Rate,
): Promise<OpenLoopReport> {
  const report = await run(subject.subject.ports[backend], options);
  subject.addExpectedTraffic(backend, trafficOf(report));
  return report;
}

/**
 * Finds the highest sustained rate between `from` and `upTo`, with a precision of about 6 %. Doubles the rate until a rate is not
 * sustained, and then bisects four times. Assumes without a test that `from` is sustained.
 */
export async function findHighestRate(
  isSustained: (rate: number) => Promise<boolean>,
  { from, upTo }: { readonly from: number; readonly upTo: number },
): Promise<number> {
  let sustained = from;
  let failed = from * 2;
  while (failed <= upTo && (await isSustained(failed))) {
    sustained = failed;
    failed *= 2;
  }
  if (failed > upTo) return sustained;
  for (let step = 0; step < 4; step++) {
    const between = Math.round((sustained + failed) / 2);
    if (await isSustained(between)) sustained = between;
    else failed = between;
  }
  return sustained;
}
