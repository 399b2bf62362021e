import { startBackends } from '../backends/start-backends.ts';
import {
  type ComparisonResult,
  formatComparison,
  type Reading,
  summarizeScenario,
} from '../comparison/comparison-result.ts';
import { MeasuredSubject } from '../comparison/measured-subject.ts';
import { roundsPerStart, runRounds } from '../comparison/rounds.ts';
import { mainThreadCpuTimeOf } from '../measure/proc-stats.ts';
import { provideSubjects } from '../provide-programs.ts';
import { startRun } from '../report/run-metadata.ts';
import { PROFILED_RUN, saveOrExplain } from '../report/save-result.ts';
import type { BackendPorts, SubjectName } from '../subjects/subject.ts';
import { readUntilStable } from '../subjects/weir-console.ts';
import { COST_LOADS, COST_RELAY_CHECKS } from './loads.ts';
import { COST_ROUNDS, COST_SCENARIO_NAMES, type CostOptions, type CostScenarioName } from './options.ts';
import { COST_BACKENDS, COST_SUBJECTS, type CostBackend, startCostSubject, unexpectedCounts } from './subjects.ts';

/** Target: the CPU time with metering and limits is at most this multiple of the CPU time without them. */
const MAX_RATIO = 1.05;

type CostReadings = ReadonlyMap<CostScenarioName, Map<SubjectName, Reading[]>>;
/** The CPU time of each subject's main thread in each measurement, in milliseconds per second. */
type MainThreadTimes = ReadonlyMap<SubjectName, Reading[]>;

/** Returns the exit code 0. Throws if a response is wrong, or if one of the two subjects counts what it should not. */
export async function benchmarkCost(options: CostOptions, signal: AbortSignal): Promise<number> {
  const { rounds, seconds, scenarios = COST_SCENARIO_NAMES } = options;
  const programs = await provideSubjects({ subjects: COST_SUBJECTS, usesDefaultSubjects: true }, ['nginx', 'wrk']);
  const endRun = startRun(programs.versions);
  await using backends = await startBackends();
  const readings: CostReadings = new Map(scenarios.map((scenario) => [scenario, new Map()]));
  const mainThread: MainThreadTimes = new Map(COST_SUBJECTS.map((name) => [name, []]));
  const descriptions = new Map<SubjectName, string>();
  for (const roundCount of roundsPerStart(rounds)) {
    await using during = new AsyncDisposableStack();
    const subjects = await startCostSubjects(backends.ports, during, options);
    for (const { subject } of subjects) descriptions.set(subject.name, subject.description);
    for (const [scenario, readingsBySubject] of readings) {
      const load = COST_LOADS[scenario];
      const added = await runRounds<CostBackend, Reading>(
        { options: { rounds, signal } },
        {
          title: load.title,
          subjects,
          measure: (subject) => measureMainThread(subject, mainThread, () => subject.runLoad(load, seconds)),
          format: ({ figure }) => figure.toFixed(1),
          rounds: roundCount,
          warmUps: Math.ceil(load.warmUpSeconds / seconds),
        },
      );
      for (const [name, list] of added) readingsBySubject.set(name, [...(readingsBySubject.get(name) ?? []), ...list]);
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
        readings: Object.fromEntries(mainThread),
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

/** Adds the CPU time that the subject's main thread uses until `measure` ends to `times`. */
async function measureMainThread<T>(
  { subject: { name, pid } }: MeasuredSubject<CostBackend>,
  times: MainThreadTimes,
  measure: () => Promise<T>,
): Promise<T> {
  const [before, startedAt] = [mainThreadCpuTimeOf(pid), performance.now()];
  const value = await measure();
  const after = mainThreadCpuTimeOf(pid);
  const userMs = after.userMs - before.userMs;
  const systemMs = after.systemMs - before.systemMs;
  const figure = (userMs + systemMs) / ((performance.now() - startedAt) / 1_000);
  times.get(name)?.push({ figure, userMs, systemMs });
  return value;
}

/** Throws if `weir` has not counted all traffic, or if `weir-unmetered` has counted any. */
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
