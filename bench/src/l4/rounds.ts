import { castsFor, turnsFor } from '../measure/turns.ts';
import type { Bars, Reading, ScenarioResult } from '../report/result.ts';
import type { SubjectName } from '../subjects/subject-name.ts';
import type { Contender } from './contender.ts';
import type { Load } from './load.ts';
import type { Stage } from './stage.ts';

export type RoundsOptions<T> = {
  readonly title: string;
  readonly contenders: readonly Contender[];
  /** One turn of one of them. */
  readonly turn: (contender: Contender) => Promise<T>;
  readonly inWords: (reading: T) => string;
  readonly rounds?: number;
  /** How many turns of each do not count, before the first round. */
  readonly warmUps?: number;
};

/** So long the compiler of a Node process is at work on what it does all the time, and costs CPU time of its own. */
const warmUpSeconds = 4;

/** Everybody has a turn each round, and a ledger that is right at the end. */
export async function playRounds<T>(stage: Stage, options: RoundsOptions<T>): Promise<Map<SubjectName, T[]>> {
  const { title, contenders, turn, inWords, rounds = stage.options.pairs, warmUps = 1 } = options;
  const readings = new Map<SubjectName, T[]>(contenders.map(({ subject }) => [subject.name, []]));
  if (warmUps > 0) stage.say(`${title}: warming up`);
  for (let warmUp = 0; warmUp < warmUps; warmUp += 1) for (const contender of contenders) await turn(contender);
  for (const [round, turns] of turnsFor(contenders, rounds).entries()) {
    for (const contender of turns) {
      stage.options.signal.throwIfAborted();
      readings.get(contender.subject.name)?.push(await turn(contender));
    }
    const figures = [...readings].map(([name, all]) => `${name} ${all.slice(-1).map(inWords).join('')}`);
    stage.say(`${title}: round ${round + 1} of ${rounds}: ${figures.join(', ')}`);
  }
  for (const contender of contenders) await contender.audit();
  return readings;
}

export type LoadOptions = {
  /** Starts those who take part, for as long as `during` takes them. */
  readonly cast: (during: AsyncDisposableStack) => Promise<readonly Contender[]>;
  readonly bars: Bars;
  readonly judged?: SubjectName;
  /** Where it is not the load's own title. */
  readonly title?: string;
};

/**
 * The CPU time that a load costs each of them. All are started anew every few rounds: two processes of the same program differ
 * by up to 15 %, each for as long as it lives, which no number of rounds would even out.
 */
export async function playLoad(stage: Stage, load: Load, options: LoadOptions): Promise<ScenarioResult[]> {
  const { cast, bars, judged, title = load.title } = options;
  const readings = new Map<SubjectName, Reading[]>();
  for (const rounds of castsFor(stage.options.pairs)) {
    await using during = new AsyncDisposableStack();
    const contenders = await cast(during);
    if (contenders.length === 0) return [];
    const played = await playRounds<Reading>(stage, {
      title,
      contenders,
      turn: (contender) => contender.run(load, stage.options.seconds),
      inWords: ({ figure }) => figure.toFixed(1),
      rounds,
      warmUps: Math.ceil(warmUpSeconds / stage.options.seconds),
    });
    for (const [name, all] of played) readings.set(name, [...(readings.get(name) ?? []), ...all]);
  }
  return [
    {
      name: title,
      unit: load.unit,
      ...(judged === undefined ? {} : { judged }),
      ...(bars.haproxy === undefined ? {} : { bar: bars.haproxy }),
      bars,
      readings: Object.fromEntries(readings),
    },
  ];
}
