import { type Backends, startBackends } from '../backends/start-backends.ts';
import { MeasuredSubject } from '../comparison/measured-subject.ts';
import { RELAY_CHECKS } from '../l4/relay-checks.ts';
import { provideSubjects } from '../provide-programs.ts';
import { formatHeadline, logProgress, startRun } from '../report/run-metadata.ts';
import { reasonToDiscardComparison, saveOrExplain } from '../report/save-result.ts';
import { startSubject } from '../subjects/start-subject.ts';
import type { BackendName, SelectableSubjectName } from '../subjects/subject.ts';
import { startWeir } from '../subjects/weir.ts';
import {
  type FairnessReadings,
  type FairnessResult,
  type FairnessRow,
  FLOOD_PATHS,
  type FloodPath,
  fairnessTable,
  LIMITED_WEIR,
  summarizeFairness,
} from './fairness-result.ts';
import { FLOODS, type Flood, measureVictimLatency, type VictimLatency } from './flood-latency.ts';
import type { FairnessOptions } from './options.ts';

/** Two processes of the same program: `floodedSubject` serves the measured tenant and the flood, `separateSubject` only the flood. */
type SubjectPair = {
  readonly name: string;
  readonly floodedSubject: MeasuredSubject<BackendName>;
  readonly separateSubject: MeasuredSubject<BackendName>;
};

/** Returns the exit code; throws if a run is invalid. */
export async function benchmarkFairness(options: FairnessOptions, signal: AbortSignal): Promise<number> {
  const { versions, subjects, leftOut } = await provideSubjects(options, ['nginx']);
  const endRun = startRun(versions);
  const notes = [...leftOut];
  await using cleanup = new AsyncDisposableStack();
  const backends = cleanup.use(await startBackends());
  const rows: FairnessRow[] = [];
  for (const name of subjects.flatMap((subject) =>
    subject === 'weir' ? (['weir', LIMITED_WEIR] as const) : subject,
  )) {
    await using during = new AsyncDisposableStack();
    const pair = await startPair(name, { backends, during });
    if (typeof pair === 'string') notes.push(`${name}: ${pair}`);
    else for (const flood of FLOODS) rows.push(summarizeFairness(await measureFlood(pair, { flood, options, signal })));
  }
  const { rounds, seconds } = options;
  const result: FairnessResult = { ...endRun(), rounds, seconds, rows, leftOut: notes };
  console.log(`${formatHeadline(result, `${rounds} rounds of ${seconds} s`)}\n`);
  console.log([...fairnessTable(rows), '', ...notes.map((note) => `left out: ${note}`)].join('\n'));
  saveOrExplain('fairness', result, { reasonToDiscard: reasonToDiscardComparison({ rounds, subjects }) });
  return 0;
}

/** Starts both processes of a subject. Returns the reason as a string if the subject does not support one of the backends. */
async function startPair(
  name: SelectableSubjectName | typeof LIMITED_WEIR,
  { backends, during }: { readonly backends: Backends; readonly during: AsyncDisposableStack },
): Promise<SubjectPair | string> {
  const start = async (): Promise<MeasuredSubject<BackendName>> => {
    const starting =
      name === LIMITED_WEIR ? startWeir(backends.ports, { limits: 'restrictive' }) : startSubject(name, backends.ports);
    return new MeasuredSubject(during.use(await starting), RELAY_CHECKS);
  };
  const [floodedSubject, separateSubject] = [await start(), await start()];
  const { unsupported } = floodedSubject.subject;
  const reason = unsupported?.echo ?? unsupported?.stream ?? unsupported?.http;
  if (reason !== undefined) return reason;
  // the backend "stream" is not verified, because the bandwidth limit of `LIMITED_WEIR` would make the download slow
  for (const subject of [floodedSubject, separateSubject]) {
    for (const backend of ['echo', 'http'] as const) await subject.verifyRelay(backend);
  }
  return { name, floodedSubject, separateSubject };
}

async function measureFlood(
  { name, floodedSubject, separateSubject }: SubjectPair,
  {
    flood,
    options,
    signal,
  }: { readonly flood: Flood; readonly options: FairnessOptions; readonly signal: AbortSignal },
): Promise<FairnessReadings> {
  const victim = floodedSubject.subject.ports;
  const floodedPorts = { idle: undefined, separateProcess: separateSubject.subject.ports, sameProcess: victim };
  const readings: Record<FloodPath, VictimLatency[]> = { idle: [], separateProcess: [], sameProcess: [] };
  for (let round = 1; round <= options.rounds; round++) {
    for (const path of FLOOD_PATHS) {
      signal.throwIfAborted();
      const flooded = floodedPorts[path];
      readings[path].push(await measureVictimLatency({ flood, flooded, seconds: options.seconds }, victim));
    }
    const latest = FLOOD_PATHS.map((path) => formatLatency(path, readings[path].at(-1)));
    logProgress(`${flood.title}, ${name}: round ${round} of ${options.rounds}: p99 µs ${latest.join(', ')}`);
  }
  return { subject: name, flood: flood.title, readings };
}

function formatLatency(path: FloodPath, latency: VictimLatency | undefined): string {
  const flood = latency?.floodSummary ? ` (${latency.floodSummary})` : '';
  return `${path} ${latency?.p99.toFixed(0)}${flood}`;
}
