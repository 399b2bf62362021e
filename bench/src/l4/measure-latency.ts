import { MESSAGE_BYTES } from '../load/echo-connection.ts';
import { type OpenLoopReport, runOpenLoop } from '../load/generators.ts';
import { type TrafficBounds, trafficBetween } from '../measure/traffic-bounds.ts';
import type { Subject, SubjectName, TrafficTotals } from '../subjects/subject.ts';
import type { L4Reading, ScenarioResult } from './l4-result.ts';
import type { L4Run } from './l4-run.ts';
import { MeasuredSubject } from './measured-subject.ts';
import { measureRounds } from './rounds.ts';

const CONNECTIONS = 64;
const MAX_REFERENCE_P99_MS = 10;
type LatencyReading = { readonly p50: L4Reading; readonly p99: L4Reading };

/**
 * Latency of an echo at a fixed rate, the same for all: half of the highest at which the 99th percentile through the reference is below
 * 10 ms. What a proxy adds is its latency less that of the echo itself in the same round.
 */
export async function measureLatency(stage: L4Run): Promise<ScenarioResult[]> {
  const chosen = await stage.sharedSubjects('echo');
  const reference = chosen.find(({ subject }) => subject.name === 'haproxy') ?? chosen[0];
  if (reference === undefined) return [];
  const subjects = [...chosen, new MeasuredSubject(directSubject(stage))];
  const rate = Math.round((await findHighestRateThrough(reference, stage)) / 2);
  const title = `latency at ${rate} messages a second`;
  const readings = await measureRounds<LatencyReading>(stage, {
    title,
    subjects,
    measure: (contender) => measureOnce(contender, { rate, seconds: stage.options.seconds }),
    format: ({ p50, p99 }) => `${p50.figure.toFixed(0)} / ${p99.figure.toFixed(0)}`,
  });
  return latencyResults(title, readings);
}

/** A rate holds when it does in one of two tries: a neighbour that is busy for a moment proves nothing. */
function findHighestRateThrough(reference: MeasuredSubject, stage: L4Run): Promise<number> {
  const holds = async (rate: number): Promise<boolean> => {
    stage.options.signal.throwIfAborted();
    const report = await runMessages(reference, { rate, seconds: 1 });
    const p99Ms = report.kind === 'measured' ? report.p99 / 1000 : Number.POSITIVE_INFINITY;
    stage.logProgress(`latency: ${rate} a second through ${reference.subject.name}: p99 ${p99Ms.toFixed(1)} ms`);
    return p99Ms < MAX_REFERENCE_P99_MS;
  };
  return findHighestRate(async (rate) => (await holds(rate)) || (await holds(rate)), { from: 2_000, upTo: 1_000_000 });
}

/**
 * The median is judged by what the proxy adds to that of the echo itself. The 99th percentile is judged as it is: those of two runs
 * cannot be subtracted, and on a machine that does other things the one without a proxy may be the longer.
 */
export function latencyResults(
  title: string,
  turns: ReadonlyMap<SubjectName, readonly LatencyReading[]>,
): ScenarioResult[] {
  const readings = (percentile: keyof LatencyReading): [SubjectName, L4Reading[]][] =>
    [...turns].map(([name, all]) => [name, all.map((each) => each[percentile])]);
  const base = turns.get('direct') ?? [];
  const added = readings('p50')
    .filter(([name]) => name !== 'direct')
    .map(([name, all]) => [name, all.map((reading, round) => subtractBase(reading, base[round]?.p50))]);
  return [
    { name: title, unit: 'µs, p50', bars: {}, readings: Object.fromEntries(readings('p50')) },
    { name: 'of it added', unit: 'µs, p50', bar: 1.1, bars: { haproxy: 1.1 }, readings: Object.fromEntries(added) },
    { name: title, unit: 'µs, p99', bar: 1.5, bars: { haproxy: 1.5 }, readings: Object.fromEntries(readings('p99')) },
  ];
}

/** At least the microsecond in which latencies are counted. */
function subtractBase(reading: L4Reading, base: L4Reading | undefined): L4Reading {
  return { ...reading, figure: Math.max(1, reading.figure - (base?.figure ?? 0)) };
}

async function measureOnce(
  contender: MeasuredSubject,
  options: { rate: number; seconds: number },
): Promise<LatencyReading> {
  const { value: report, userMs, systemMs } = await contender.withCpuTime(() => runMessages(contender, options));
  if (report.kind === 'overloaded') {
    throw new Error(`${contender.subject.name} does not keep up with ${options.rate} messages a second`);
  }
  const reading = { userMs, systemMs, count: report.counted, ms: report.ms };
  return { p50: { ...reading, figure: report.p50 }, p99: { ...reading, figure: report.p99 } };
}

async function runMessages(
  contender: MeasuredSubject,
  options: { rate: number; seconds: number },
): Promise<OpenLoopReport> {
  const report = await runOpenLoop({ port: contender.subject.ports.echo, connections: CONNECTIONS, ...options });
  contender.addExpectedTraffic('echo', messageTraffic(report));
  return report;
}

function messageTraffic(report: OpenLoopReport): TrafficBounds {
  const [least, most] = report.kind === 'measured' ? [report.messages, report.messages] : [report.echoed, report.sent];
  const metered = (messages: number): TrafficTotals => {
    const bytes = messages * MESSAGE_BYTES;
    return { receivedBytes: bytes, sentBytes: bytes, connections: CONNECTIONS };
  };
  return trafficBetween(metered(least), metered(most));
}

/** Nobody in between: what the generator, the echo and the kernel take. */
function directSubject({ options: { backends } }: L4Run): Subject {
  return {
    name: 'direct',
    description: 'no proxy',
    pid: backends.pid,
    ports: backends.ports,
    [Symbol.asyncDispose]: async () => {},
  };
}

/**
 * The highest rate that holds, to about 6 %: doubled from `from` until one does not, then halved in between four times.
 * Returns `from` when not even that holds, and `upTo` when nothing below fails.
 */
export async function findHighestRate(
  holds: (rate: number) => Promise<boolean>,
  { from, upTo }: { readonly from: number; readonly upTo: number },
): Promise<number> {
  let good = from;
  let bad = from * 2;
  while (bad <= upTo && (await holds(bad))) {
    good = bad;
    bad *= 2;
  }
  if (bad > upTo) return good;
  for (let step = 0; step < 4; step++) {
    const between = Math.round((good + bad) / 2);
    if (await holds(between)) good = between;
    else bad = between;
  }
  return good;
}
