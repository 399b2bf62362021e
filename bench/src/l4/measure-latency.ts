import { messageBytes } from '../load/echo-line.ts';
import { highestRate } from '../load/highest-rate.ts';
import { type OpenLoopReport, runOpenLoop } from '../load/open-loop.ts';
import { between, type Moved } from '../measure/moved.ts';
import type { Reading, ScenarioResult } from '../report/result.ts';
import type { Metered, Subject } from '../subjects/subject.ts';
import type { SubjectName } from '../subjects/subject-name.ts';
import { Contender } from './contender.ts';
import { playRounds } from './rounds.ts';
import type { Stage } from './stage.ts';

const connections = 64;
const holdsBelowMs = 10;

type Turn = { readonly p50: Reading; readonly p99: Reading };

/**
 * Latency of an echo at a fixed rate, the same for all: half of the highest at which the 99th percentile through the reference is below
 * 10 ms. What a proxy adds is its latency less that of the echo itself in the same round.
 */
export async function measureLatency(stage: Stage): Promise<ScenarioResult[]> {
  const chosen = await stage.contenders('echo');
  const reference = chosen.find(({ subject }) => subject.name === 'haproxy') ?? chosen[0];
  if (reference === undefined) return [];
  const contenders = [...chosen, new Contender(direct(stage))];
  const rate = Math.round((await highestRateThrough(reference, stage)) / 2);
  const title = `latency at ${rate} messages a second`;
  const readings = await playRounds<Turn>(stage, {
    title,
    contenders,
    turn: (contender) => turn(contender, { rate, seconds: stage.options.seconds }),
    inWords: ({ p50, p99 }) => `${p50.figure.toFixed(0)} / ${p99.figure.toFixed(0)}`,
  });
  return resultsFor(title, readings);
}

/** A rate holds when it does in one of two tries: a neighbour that is busy for a moment proves nothing. */
function highestRateThrough(reference: Contender, stage: Stage): Promise<number> {
  const holds = async (rate: number): Promise<boolean> => {
    stage.options.signal.throwIfAborted();
    const report = await load(reference, { rate, seconds: 1 });
    const p99Ms = report.kind === 'measured' ? report.p99 / 1000 : Number.POSITIVE_INFINITY;
    stage.say(`latency: ${rate} a second through ${reference.subject.name}: p99 ${p99Ms.toFixed(1)} ms`);
    return p99Ms < holdsBelowMs;
  };
  return highestRate(async (rate) => (await holds(rate)) || (await holds(rate)), { from: 2_000, upTo: 1_000_000 });
}

/**
 * The median is judged by what the proxy adds to that of the echo itself. The 99th percentile is judged as it is: those of two runs
 * cannot be subtracted, and on a machine that does other things the one without a proxy may be the longer.
 */
export function resultsFor(title: string, turns: ReadonlyMap<SubjectName, readonly Turn[]>): ScenarioResult[] {
  const readings = (percentile: keyof Turn): [SubjectName, Reading[]][] =>
    [...turns].map(([name, all]) => [name, all.map((each) => each[percentile])]);
  const base = turns.get('direct') ?? [];
  const added = readings('p50')
    .filter(([name]) => name !== 'direct')
    .map(([name, all]) => [name, all.map((reading, round) => without(reading, base[round]?.p50))]);
  return [
    { name: title, unit: 'µs, p50', bars: {}, readings: Object.fromEntries(readings('p50')) },
    { name: 'of it added', unit: 'µs, p50', bar: 1.1, bars: { haproxy: 1.1 }, readings: Object.fromEntries(added) },
    { name: title, unit: 'µs, p99', bar: 1.5, bars: { haproxy: 1.5 }, readings: Object.fromEntries(readings('p99')) },
  ];
}

/** At least the microsecond in which latencies are counted. */
function without(reading: Reading, base: Reading | undefined): Reading {
  return { ...reading, figure: Math.max(1, reading.figure - (base?.figure ?? 0)) };
}

async function turn(contender: Contender, options: { rate: number; seconds: number }): Promise<Turn> {
  const { value: report, userMs, systemMs } = await contender.charged(() => load(contender, options));
  if (report.kind === 'overloaded') {
    throw new Error(`${contender.subject.name} does not keep up with ${options.rate} messages a second`);
  }
  const reading = { userMs, systemMs, count: report.counted, ms: report.ms };
  return { p50: { ...reading, figure: report.p50 }, p99: { ...reading, figure: report.p99 } };
}

async function load(contender: Contender, options: { rate: number; seconds: number }): Promise<OpenLoopReport> {
  const report = await runOpenLoop({ port: contender.subject.ports.echo, connections, ...options });
  contender.add('echo', movedByMessages(report));
  return report;
}

function movedByMessages(report: OpenLoopReport): Moved {
  const [least, most] = report.kind === 'measured' ? [report.messages, report.messages] : [report.echoed, report.sent];
  const metered = (messages: number): Metered => {
    const bytes = messages * messageBytes;
    return { receivedBytes: bytes, sentBytes: bytes, connections };
  };
  return between(metered(least), metered(most));
}

/** Nobody in between: what the generator, the echo and the kernel take. */
function direct({ options: { backends } }: Stage): Subject {
  return {
    name: 'direct',
    description: 'no proxy',
    pid: backends.pid,
    ports: backends.ports,
    [Symbol.asyncDispose]: async () => {},
  };
}
