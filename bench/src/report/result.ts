import { ratios, type Spread, spread } from '../measure/statistics.ts';
import type { SubjectName } from '../subjects/subject-name.ts';

export type Result = {
  readonly at: string;
  readonly commit: string;
  /** The sources of the commit were changed. */
  readonly modified: boolean;
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly pairs: number;
  readonly seconds: number;
  readonly subjects: readonly { readonly name: SubjectName; readonly description: string }[];
  readonly scenarios: readonly ScenarioResult[];
};

export type ScenarioResult = {
  readonly name: string;
  readonly unit: string;
  readonly bar: number;
  /** By subject; the nth of each ran in the same round. */
  readonly readings: Readonly<Partial<Record<SubjectName, readonly Reading[]>>>;
};

/** One turn. `count`: requests, connections or bytes in `ms`; `userMs`, `systemMs`: the proxy's CPU time for them. */
export type Reading = {
  readonly figure: number;
  readonly userMs: number;
  readonly systemMs: number;
  readonly count: number;
  readonly ms: number;
};

export type Summary = {
  readonly name: SubjectName;
  readonly figure: Spread;
  /** How much of the CPU time is spent outside of the kernel, 0 to 1. */
  readonly userShare: number;
  readonly ratio?: Spread;
};

/** One per subject: its figures, and their ratios to those of HAProxy in the same rounds. */
export function summariesFor({ readings }: ScenarioResult): Summary[] {
  const reference = figures(readings.haproxy);
  return (Object.keys(readings) as SubjectName[]).map((name) => {
    const own = figures(readings[name]);
    const summary = { name, figure: spread(own), userShare: userShareOf(readings[name]) };
    const isCompared = name !== 'haproxy' && reference.length > 0;
    return isCompared ? { ...summary, ratio: spread(ratios(own, reference)) } : summary;
  });
}

export type Conditions = {
  readonly pairs: number;
  readonly subjects: readonly SubjectName[];
  readonly profile?: string;
};

const fewestPairs = 10;

/** Why a run, valid in itself, is no result to be kept; undefined: it is one. */
export function reasonNotToKeep({ pairs, subjects, profile }: Conditions): string | undefined {
  if (profile !== undefined) return 'a process that is profiled is slower';
  if (pairs < fewestPairs) return `a result needs ${fewestPairs} pairs or more`;
  if (!subjects.includes('weir') || !subjects.includes('haproxy')) return 'a result needs weir and haproxy';
  return undefined;
}

function figures(readings: readonly Reading[] = []): number[] {
  return readings.map(({ figure }) => figure);
}

function userShareOf(readings: readonly Reading[] = []): number {
  const user = readings.reduce((sum, { userMs }) => sum + userMs, 0);
  const system = readings.reduce((sum, { systemMs }) => sum + systemMs, 0);
  return user / (user + system);
}
