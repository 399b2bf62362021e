import type { CommonOptions } from '../arguments.ts';
import { type Backends, startBackends } from '../backends/start-backends.ts';
import { Contender } from '../l4/contender.ts';
import { provideFor } from '../provide.ts';
import { machine } from '../report/machine.ts';
import { reasonNotToKeep } from '../report/reason-not-to-keep.ts';
import { workTree } from '../report/work-tree.ts';
import { writeResult } from '../report/write-result.ts';
import { startSubject } from '../subjects/start-subject.ts';
import type { ChosenName } from '../subjects/subject-name.ts';
import { startWeir } from '../subjects/weir.ts';
import { type FairnessRow, fairnessTable, limitedWeir } from './fairness-result.ts';
import { type Flood, floods } from './flood.ts';
import { type Latency, latencyDuring } from './victim.ts';

/** One worker in which both tenants are, and another of the same kind for the flood beside it. */
type Pair = { readonly name: string; readonly shared: Contender; readonly other: Contender };

const say = (text: string): void => console.error(`bench: ${text}`);

/** Returns the exit code; throws when a run is not valid. */
export async function benchmarkFairness(options: CommonOptions, signal: AbortSignal): Promise<number> {
  const { versions, subjects, leftOut } = await provideFor(options, ['nginx']);
  const notes = [...leftOut];
  const at = new Date();
  await using cleanup = new AsyncDisposableStack();
  const backends = cleanup.use(await startBackends());
  const rows: FairnessRow[] = [];
  for (const name of subjects.flatMap((each) => (each === 'weir' ? (['weir', limitedWeir] as const) : [each]))) {
    await using during = new AsyncDisposableStack();
    const pair = await startPair(name, { backends, during });
    if (typeof pair === 'string') notes.push(`${name}, since ${pair}`);
    else for (const flood of floods) rows.push(await measure(pair, { flood, options, signal }));
  }
  const { pairs, seconds } = options;
  const result = {
    at: at.toISOString(),
    ...workTree(),
    machine: machine(),
    versions,
    pairs,
    seconds,
    rows,
    leftOut: notes,
  };
  console.log(`${result.at.slice(0, 10)}, ${result.commit}, ${result.machine}, ${pairs} rounds of ${seconds} s\n`);
  console.log([...fairnessTable(rows), '', ...notes.map((note) => `Left out: ${note}.`)].join('\n'));
  const reason = reasonNotToKeep({ pairs, subjects });
  console.log(reason === undefined ? `\nwritten to ${writeResult('fairness', result)}` : `\nnot written: ${reason}`);
  return 0;
}

/** Or why it cannot take part. */
async function startPair(
  name: ChosenName | typeof limitedWeir,
  { backends, during }: { readonly backends: Backends; readonly during: AsyncDisposableStack },
): Promise<Pair | string> {
  const start = async (): Promise<Contender> => {
    const starting =
      name === limitedWeir ? startWeir(backends.ports, { limits: 'tight' }) : startSubject(name, backends.ports);
    return new Contender(during.use(await starting));
  };
  const [shared, other] = [await start(), await start()];
  const { lacks } = shared.subject;
  const reason = lacks?.echo ?? lacks?.bulk ?? lacks?.answers;
  if (reason !== undefined) return reason;
  // not the stream: a tenant with limits would wait for all of it
  for (const contender of [shared, other]) for (const each of ['echo', 'answers'] as const) await contender.prove(each);
  return { name, shared, other };
}

async function measure(
  { name, shared, other }: Pair,
  { flood, options, signal }: { readonly flood: Flood; readonly options: CommonOptions; readonly signal: AbortSignal },
): Promise<FairnessRow> {
  const victim = shared.subject.ports;
  const ways = { quiet: undefined, beside: other.subject.ports, through: victim } as const;
  const readings: Record<keyof typeof ways, Latency[]> = { quiet: [], beside: [], through: [] };
  for (let round = 1; round <= options.pairs; round++) {
    for (const [way, flooded] of Object.entries(ways) as [keyof typeof ways, typeof victim | undefined][]) {
      signal.throwIfAborted();
      readings[way].push(await latencyDuring({ flood, flooded, seconds: options.seconds }, victim));
    }
    const last = Object.entries(readings).map(([way, all]) => inWords(way, all.at(-1)));
    say(`${flood.title}, ${name}: round ${round} of ${options.pairs}: p99 µs ${last.join(', ')}`);
  }
  const of = (what: 'p50' | 'p99'): FairnessRow['p99'] => ({
    quiet: readings.quiet.map((each) => each[what]),
    beside: readings.beside.map((each) => each[what]),
    through: readings.through.map((each) => each[what]),
  });
  return { subject: name, flood: flood.title, p50: of('p50'), p99: of('p99') };
}

function inWords(way: string, latency: Latency | undefined): string {
  const flood = latency?.flood ? ` (${latency.flood})` : '';
  return `${way} ${latency?.p99.toFixed(0)}${flood}`;
}
