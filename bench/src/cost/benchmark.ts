import { startBackends } from '../backends/start-backends.ts';
import {
  type ComparisonResult,
  formatComparison,
  type Reading,
  summarizeScenario,
} from '../comparison/comparison-result.ts';
import { MeasuredSubject } from '../comparison/measured-subject.ts';
import { roundsPerStart } from '../comparison/rounds.ts';
import { mainThreadCpuTimeOf } from '../measure/proc-stats.ts';
import { leaveSubjectProcessor } from '../processes/processors.ts';
import { provideSubjects } from '../provide-programs.ts';
import { logProgress, startRun } from '../report/run-metadata.ts';
import { PROFILED_RUN, saveOrExplain } from '../report/save-result.ts';
import type { BackendPorts, SubjectName } from '../subjects/subject.ts';
import { readUntilStable } from '../subjects/weir-console.ts';
import { COST_LOADS, COST_RELAY_CHECKS, type CostLoad } from './loads.ts';
import { COST_ROUNDS, COST_SCENARIO_NAMES, type CostOptions, type CostScenarioName } from './options.ts';
import { COST_BACKENDS, COST_SUBJECTS, type CostBackend, startCostSubject, unexpectedCounts } from './subjects.ts';

/** Target: the CPU time with metering and limits is at most this multiple of the CPU time without them. */
const MAX_RATIO = 1.05;

type CostReadings = ReadonlyMap<CostScenarioName, Map<SubjectName, Reading[]>>;

/** Returns the exit code 0. Throws if a response is wrong, or if a subject counts what it should not. */
export async function benchmarkCost(options: CostOptions, signal: AbortSignal): Promise<number> {
  const { rounds, seconds, scenarios = COST_SCENARIO_NAMES } = options;
  const programs = await provideSubjects({ subjects: COST_SUBJECTS, usesDefaultSubjects: true }, ['nginx', 'wrk']);
  const endRun = startRun(programs.versions);
  leaveSubjectProcessor();
  await using backends = await startBackends();
  const readings: CostReadings = new Map(scenarios.map((scenario) => [scenario, new Map()]));
  const mainThreadReadings = new Map<SubjectName, Reading[]>();
  const descriptions = new Map<SubjectName, string>();
  for (const roundCount of roundsPerStart(rounds)) {
    await using during = new AsyncDisposableStack();
    const subjects = await startCostSubjects(backends.ports, during, options);
    for (const { subject } of subjects) descriptions.set(subject.name, subject.description);
    for (const [scenario, readingsBySubject] of readings) {
      const load = COST_LOADS[scenario];
      logProgress(`${load.title}: warming up`);
      for (let warmUp = 0; warmUp < load.warmUpSeconds / seconds; warmUp += 1) {
        signal.throwIfAborted();
        await measureAtOnce(subjects, load, seconds);
      }
      for (let round = 0; round < roundCount; round += 1) {
        signal.throwIfAborted();
        const measured = await measureAtOnce(subjects, load, seconds);
        logProgress(`${load.title}: ${formatRound(measured)}`);
        for (const { name, relaying, mainThread } of measured) {
          appendTo(readingsBySubject, name, relaying);
          appendTo(mainThreadReadings, name, mainThread);
        }
      }
    }
    for (const subject of subjects) await verifyCounts(subject);
  }
  const result: ComparisonResult = {
    ...endRun(),
    rounds,
    seconds,
    subjects: [...descriptions].map(([name, description]) => ({ name, description })),
    scenarios: [
      ...[...readings].map(([scenario, readingsBySubject]) => {
        const { title, unit } = COST_LOADS[scenario];
        const targets = { 'weir-unmetered': MAX_RATIO };
        return summarizeScenario({ name: title, unit, targets, readings: Object.fromEntries(readingsBySubject) });
      }),
      summarizeScenario({
        ...{ name: 'main thread', unit: 'CPU-ms per second', targets: {} },
        readings: Object.fromEntries(mainThreadReadings),
      }),
    ],
    leftOut: [],
  };
  console.log(formatComparison(result));
  saveOrExplain('cost', result, { reasonToDiscard: reasonToDiscardCost(options) });
  return 0;
}

async function startCostSubjects(
  backends: BackendPorts,
  during: AsyncDisposableStack,
  options: Pick<CostOptions, 'profileDirectory'>,
): Promise<MeasuredSubject<CostBackend>[]> {
  const subjects: MeasuredSubject<CostBackend>[] = [];
  for (const name of COST_SUBJECTS) {
    const subject = during.use(await startCostSubject(name, backends, options));
    const reasons = Object.values(subject.unsupported ?? {});
    if (reasons.length > 0) throw new Error(`${name} does not relay: ${reasons.join('; ')}`);
    const measured = new MeasuredSubject(subject, COST_RELAY_CHECKS);
    for (const backend of COST_BACKENDS) await measured.verifyRelay(backend);
    subjects.push(measured);
  }
  return subjects;
}

/** What one subject has used in one round. */
interface MeasuredRound {
  readonly name: SubjectName;
  /** The CPU time of the threads that relay, in the unit of the load. */
  readonly relaying: Reading;
  /** The CPU time of the main thread, in milliseconds per second. */
  readonly mainThread: Reading;
}

/**
 * Applies the load to all subjects at the same time. They take turns on their processor every few milliseconds, so that a change of
 * the machine's speed affects all of them alike.
 */
function measureAtOnce(
  subjects: readonly MeasuredSubject<CostBackend>[],
  load: CostLoad,
  seconds: number,
): Promise<MeasuredRound[]> {
  return Promise.all(
    subjects.map(async (measured) => {
      const { name, pid } = measured.subject;
      const [before, startedAt] = [mainThreadCpuTimeOf(pid), performance.now()];
      const relaying = await measured.runLoad(load, seconds);
      const after = mainThreadCpuTimeOf(pid);
      const userMs = after.userMs - before.userMs;
      const systemMs = after.systemMs - before.systemMs;
      const figure = (userMs + systemMs) / ((performance.now() - startedAt) / 1_000);
      return { name, relaying, mainThread: { figure, userMs, systemMs } };
    }),
  );
}

function formatRound(measured: readonly MeasuredRound[]): string {
  return measured.map(({ name, relaying }) => `${name} ${relaying.figure.toFixed(1)}`).join(', ');
}

function appendTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** Throws if `weir` has not counted all traffic, or if another subject has counted any. */
async function verifyCounts(measured: MeasuredSubject<CostBackend>): Promise<void> {
  const { name, readLedger } = measured.subject;
  if (readLedger === undefined) throw new Error(`${name} has no ledger`);
  if (name === 'weir') return measured.verifyLedger();
  const counts = unexpectedCounts(await readUntilStable(readLedger));
  if (counts.length > 0) throw new Error(`${name} counts traffic: ${counts.join('; ')}`);
}

function reasonToDiscardCost({ rounds, scenarios, profileDirectory }: CostOptions): string | undefined {
  if (profileDirectory !== undefined) return PROFILED_RUN;
  if (rounds < COST_ROUNDS) return `a result needs ${COST_ROUNDS} rounds or more`;
  return scenarios === undefined ? undefined : 'a result needs all scenarios';
}
