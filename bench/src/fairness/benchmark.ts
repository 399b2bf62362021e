import type { ComparisonOptions } from '../arguments.ts';
import { type Backends, startBackends } from '../backends/start-backends.ts';
import { MeasuredSubject } from '../l4/measured-subject.ts';
import { provideSubjects } from '../provide-programs.ts';
import { describeMachine, readWorkTree } from '../report/run-metadata.ts';
import { reasonToDiscard, saveResult } from '../report/save-result.ts';
import { startSubject } from '../subjects/start-subject.ts';
import type { SelectableSubjectName } from '../subjects/subject.ts';
import { startWeir } from '../subjects/weir.ts';
import { type FairnessRow, fairnessTable, LIMITED_WEIR } from './fairness-result.ts';
import { FLOODS, type Flood, measureVictimLatency, type VictimLatency } from './flood-latency.ts';

/** One worker in which both tenants are, and another of the same kind for the flood beside it. */
type SubjectPair = {
  readonly name: string;
  readonly floodedSubject: MeasuredSubject;
  readonly separateSubject: MeasuredSubject;
};

const logProgress = (text: string): void => console.error(`bench: ${text}`);

/** Returns the exit code; throws when a run is not valid. */
export async function benchmarkFairness(options: ComparisonOptions, signal: AbortSignal): Promise<number> {
  const { versions, subjects, leftOut } = await provideSubjects(options, ['nginx']);
  const notes = [...leftOut];
  const at = new Date();
  await using cleanup = new AsyncDisposableStack();
  const backends = cleanup.use(await startBackends());
  const rows: FairnessRow[] = [];
  for (const name of subjects.flatMap((each) => (each === 'weir' ? (['weir', LIMITED_WEIR] as const) : [each]))) {
    await using during = new AsyncDisposableStack();
    const pair = await startPair(name, { backends, during });
    if (typeof pair === 'string') notes.push(`${name}, since ${pair}`);
    else for (const flood of FLOODS) rows.push(await measureFlood(pair, { flood, options, signal }));
  }
  const { pairs, seconds } = options;
  const result = {
    at: at.toISOString(),
    ...readWorkTree(),
    machine: describeMachine(),
    versions,
    pairs,
    seconds,
    rows,
    leftOut: notes,
  };
  console.log(`${result.at.slice(0, 10)}, ${result.commit}, ${result.machine}, ${pairs} rounds of ${seconds} s\n`);
  console.log([...fairnessTable(rows), '', ...notes.map((note) => `Left out: ${note}.`)].join('\n'));
  const reason = reasonToDiscard({ pairs, subjects });
  console.log(reason === undefined ? `\nwritten to ${saveResult('fairness', result)}` : `\nnot written: ${reason}`);
  return 0;
}

/** Or why it cannot take part. */
async function startPair(
  name: SelectableSubjectName | typeof LIMITED_WEIR,
  { backends, during }: { readonly backends: Backends; readonly during: AsyncDisposableStack },
): Promise<SubjectPair | string> {
  const start = async (): Promise<MeasuredSubject> => {
    const starting =
      name === LIMITED_WEIR ? startWeir(backends.ports, { limits: 'tight' }) : startSubject(name, backends.ports);
    return new MeasuredSubject(during.use(await starting));
  };
  const [floodedSubject, separateSubject] = [await start(), await start()];
  const { unsupported } = floodedSubject.subject;
  const reason = unsupported?.echo ?? unsupported?.bulk ?? unsupported?.answers;
  if (reason !== undefined) return reason;
  // not the stream: a tenant with limits would wait for all of it
  for (const contender of [floodedSubject, separateSubject])
    for (const each of ['echo', 'answers'] as const) await contender.verifyRelay(each);
  return { name, floodedSubject, separateSubject };
}

async function measureFlood(
  { name, floodedSubject, separateSubject }: SubjectPair,
  {
    flood,
    options,
    signal,
  }: { readonly flood: Flood; readonly options: ComparisonOptions; readonly signal: AbortSignal },
): Promise<FairnessRow> {
  const victim = floodedSubject.subject.ports;
  const ways = { quiet: undefined, beside: separateSubject.subject.ports, through: victim } as const;
  const readings: Record<keyof typeof ways, VictimLatency[]> = { quiet: [], beside: [], through: [] };
  for (let round = 1; round <= options.pairs; round++) {
    for (const [way, flooded] of Object.entries(ways) as [keyof typeof ways, typeof victim | undefined][]) {
      signal.throwIfAborted();
      readings[way].push(await measureVictimLatency({ flood, flooded, seconds: options.seconds }, victim));
    }
    const last = Object.entries(readings).map(([way, all]) => formatLatency(way, all.at(-1)));
    logProgress(`${flood.title}, ${name}: round ${round} of ${options.pairs}: p99 µs ${last.join(', ')}`);
  }
  const of = (what: 'p50' | 'p99'): FairnessRow['p99'] => ({
    quiet: readings.quiet.map((each) => each[what]),
    beside: readings.beside.map((each) => each[what]),
    through: readings.through.map((each) => each[what]),
  });
  return { subject: name, flood: flood.title, p50: of('p50'), p99: of('p99') };
}

function formatLatency(way: string, latency: VictimLatency | undefined): string {
  const flood = latency?.floodSummary ? ` (${latency.floodSummary})` : '';
  return `${way} ${latency?.p99.toFixed(0)}${flood}`;
}
