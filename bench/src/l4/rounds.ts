import type { SubjectName } from '../subjects/subject.ts';
import type { L4Reading, ScenarioResult, TargetRatios } from './l4-result.ts';
import type { L4Run } from './l4-run.ts';
import type { Load } from './loads.ts';
import type { MeasuredSubject } from './measured-subject.ts';

export type RoundsOptions<T> = {
  readonly title: string;
  readonly subjects: readonly MeasuredSubject[];
  /** One turn of one of them. */
  readonly measure: (contender: MeasuredSubject) => Promise<T>;
  readonly format: (reading: T) => string;
  readonly rounds?: number;
  /** How many turns of each do not count, before the first round. */
  readonly warmUps?: number;
};

/** So long the compiler of a Node process is at work on what it does all the time, and costs CPU time of its own. */
const WARM_UP_SECONDS = 4;

/** Everybody has a turn each round, and a ledger that is right at the end. */
export async function measureRounds<T>(stage: L4Run, options: RoundsOptions<T>): Promise<Map<SubjectName, T[]>> {
  const { title, subjects, measure, format, rounds = stage.options.pairs, warmUps = 1 } = options;
  const readings = new Map<SubjectName, T[]>(subjects.map(({ subject }) => [subject.name, []]));
  if (warmUps > 0) stage.logProgress(`${title}: warming up`);
  for (let warmUp = 0; warmUp < warmUps; warmUp += 1) for (const contender of subjects) await measure(contender);
  for (const [round, turns] of rotatedOrders(subjects, rounds).entries()) {
    for (const contender of turns) {
      stage.options.signal.throwIfAborted();
      readings.get(contender.subject.name)?.push(await measure(contender));
    }
    const figures = [...readings].map(([name, all]) => `${name} ${all.slice(-1).map(format).join('')}`);
    stage.logProgress(`${title}: round ${round + 1} of ${rounds}: ${figures.join(', ')}`);
  }
  for (const contender of subjects) await contender.verifyLedger();
  return readings;
}

export type LoadOptions = {
  /** Starts those who take part, for as long as `during` takes them. */
  readonly startSubjects: (during: AsyncDisposableStack) => Promise<readonly MeasuredSubject[]>;
  readonly bars: TargetRatios;
  readonly judgedSubject?: SubjectName;
  /** Where it is not the load's own title. */
  readonly title?: string;
};

/**
 * The CPU time that a load costs each of them. All are started anew every few rounds: two processes of the same program differ
 * by up to 15 %, each for as long as it lives, which no number of rounds would even out.
 */
export async function measureLoad(stage: L4Run, load: Load, options: LoadOptions): Promise<ScenarioResult[]> {
  const { startSubjects, bars, judgedSubject, title = load.title } = options;
  const readings = new Map<SubjectName, L4Reading[]>();
  for (const rounds of roundsPerStart(stage.options.pairs)) {
    await using during = new AsyncDisposableStack();
    const subjects = await startSubjects(during);
    if (subjects.length === 0) return [];
    const played = await measureRounds<L4Reading>(stage, {
      title,
      subjects,
      measure: (contender) => contender.runLoad(load, stage.options.seconds),
      format: ({ figure }) => figure.toFixed(1),
      rounds,
      warmUps: Math.ceil(WARM_UP_SECONDS / stage.options.seconds),
    });
    for (const [name, all] of played) readings.set(name, [...(readings.get(name) ?? []), ...all]);
  }
  return [
    {
      name: title,
      unit: load.unit,
      ...(judgedSubject === undefined ? {} : { judged: judgedSubject }),
      ...(bars.haproxy === undefined ? {} : { bar: bars.haproxy }),
      bars,
      readings: Object.fromEntries(readings),
    },
  ];
}

/**
 * Who runs when: each round everybody once, and each round another one first, so that what drifts during a run (clock
 * frequency, neighbours, sockets in TIME_WAIT) meets all alike.
 */
export function rotatedOrders<T>(subjects: readonly T[], rounds: number): T[][] {
  return Array.from({ length: rounds }, (_, round) =>
    subjects.map((_, index) => subjects[(index + round) % subjects.length] as T),
  );
}

const ROUNDS_PER_START = 2;

/** How many rounds those play who are started together, one cast after the other. */
export function roundsPerStart(rounds: number): number[] {
  const casts = Math.ceil(rounds / ROUNDS_PER_START);
  return Array.from({ length: casts }, (_, cast) => Math.min(ROUNDS_PER_START, rounds - cast * ROUNDS_PER_START));
}
