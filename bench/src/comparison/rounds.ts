import { logProgress } from '../report/run-metadata.ts';
import type { SubjectName } from '../subjects/subject.ts';
import type { Reading, ScenarioReadings, TargetRatios } from './comparison-result.ts';
import type { ComparisonRun } from './comparison-run.ts';
import type { Load } from './load.ts';
import type { MeasuredSubject } from './measured-subject.ts';

export type LoadOptions<Backend extends string> = {
  /** Starts the subjects. Disposing `during` stops the subjects. */
  readonly startSubjects: (during: AsyncDisposableStack) => Promise<readonly MeasuredSubject<Backend>[]>;
  readonly targets: TargetRatios;
  readonly judgedSubject?: SubjectName;
  /** Name of the scenario; default: the title of the load. */
  readonly title?: string;
};

/** Duration of the load before the first round. Not measured, because Node compiles hot code for about this long. */
const WARM_UP_SECONDS = 4;

/**
 * Measures the CPU time that a load costs each subject. All subjects restart every few rounds, because the CPU times of two processes
 * of the same program differ by up to 15 % for as long as the processes run. Only new processes average this difference out.
 */
export async function measureLoad<Backend extends string, Name extends SubjectName>(
  run: ComparisonRun<Backend, Name>,
  load: Load<Backend>,
  options: LoadOptions<Backend>,
): Promise<ScenarioReadings[]> {
  const { startSubjects, targets, judgedSubject, title = load.title } = options;
  const { rounds, seconds } = run.options;
  const readings = new Map<SubjectName, Reading[]>();
  for (const roundCount of roundsPerStart(rounds)) {
    await using during = new AsyncDisposableStack();
    const subjects = await startSubjects(during);
    if (subjects.length === 0) return [];
    const added = await measureRounds<Backend, Reading>(run, {
      title,
      subjects,
      measure: (subject) => subject.runLoad(load, seconds),
      format: ({ figure }) => figure.toFixed(1),
      rounds: roundCount,
      warmUps: Math.ceil(WARM_UP_SECONDS / seconds),
    });
    for (const [name, subjectReadings] of added) {
      readings.set(name, [...(readings.get(name) ?? []), ...subjectReadings]);
    }
  }
  return [
    {
      name: title,
      unit: load.unit,
      ...(judgedSubject === undefined ? {} : { judgedSubject }),
      targets,
      readings: Object.fromEntries(readings),
    },
  ];
}

export type RoundsOptions<Backend extends string, T> = {
  readonly title: string;
  readonly subjects: readonly MeasuredSubject<Backend>[];
  /** Measures one subject in one round. */
  readonly measure: (subject: MeasuredSubject<Backend>) => Promise<T>;
  readonly format: (reading: T) => string;
  readonly rounds?: number;
  /** Number of measurements of each subject before the first round. Their readings are dropped. */
  readonly warmUps?: number;
};

type RoundsRun = { readonly options: { readonly rounds: number; readonly signal: AbortSignal } };

/** Measures every subject once in each round, and verifies the ledgers at the end. */
export async function measureRounds<Backend extends string, T>(
  run: RoundsRun,
  options: RoundsOptions<Backend, T>,
): Promise<Map<SubjectName, T[]>> {
  const readings = await runRounds(run, options);
  for (const subject of options.subjects) await subject.verifyLedger();
  return readings;
}

/** Measures every subject once in each round. The caller verifies the ledgers. */
export async function runRounds<Backend extends string, T>(
  run: RoundsRun,
  options: RoundsOptions<Backend, T>,
): Promise<Map<SubjectName, T[]>> {
  const { title, subjects, measure, format, rounds = run.options.rounds, warmUps = 1 } = options;
  const readings = new Map<SubjectName, T[]>(subjects.map(({ subject }) => [subject.name, []]));
  if (warmUps > 0) logProgress(`${title}: warming up`);
  for (let warmUp = 0; warmUp < warmUps; warmUp += 1) for (const subject of subjects) await measure(subject);
  for (const [round, order] of rotatedOrders(subjects, rounds).entries()) {
    for (const subject of order) {
      run.options.signal.throwIfAborted();
      readings.get(subject.subject.name)?.push(await measure(subject));
    }
    const latest = [...readings].map(([name, list]) => `${name} ${list.slice(-1).map(format).join('')}`);
    logProgress(`${title}: round ${round + 1} of ${rounds}: ${latest.join(', ')}`);
  }
  return readings;
}

/**
 * Returns the order of the subjects in each round. Consecutive rounds begin with different subjects, so that changes of the machine
 * during a run (clock frequency, other virtual machines, sockets in TIME_WAIT) affect all subjects alike.
 */
export function rotatedOrders<T>(subjects: readonly T[], rounds: number): T[][] {
  return Array.from({ length: rounds }, (_, round) =>
    subjects.map((_, index) => subjects[(index + round) % subjects.length] as T),
  );
}

const ROUNDS_PER_START = 2;

/** Returns for each start of the subjects how many rounds run until the next start. */
export function roundsPerStart(rounds: number): number[] {
  const starts = Math.ceil(rounds / ROUNDS_PER_START);
  return Array.from({ length: starts }, (_, start) => Math.min(ROUNDS_PER_START, rounds - start * ROUNDS_PER_START));
}
