import { pairwiseRatios, type Quartiles, quartilesOf } from '../measure/statistics.ts';
import type { SubjectName } from '../subjects/subject-name.ts';

export type L4Result = {
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
  /** Who was left out of what, and why, in words. */
  readonly leftOut: readonly string[];
};

export type ScenarioResult = {
  readonly name: string;
  readonly unit: string;
  /** Whose figure has the bars; Weir's unless said. */
  readonly judged?: SubjectName;
  /** How many times HAProxy's figure it may be; the same as in `bars`, and all that results had until 21 November 2026. */
  readonly bar?: number;
  /** How many times the figure of each of these it may be. */
  readonly bars: TargetRatios;
  /** How much it may be. */
  readonly most?: number;
  /** By subject; the nth of each ran in the same round. */
  readonly readings: Readonly<Partial<Record<SubjectName, readonly L4Reading[]>>>;
};

export type TargetRatios = Readonly<Partial<Record<SubjectName, number>>>;

/** One turn. `count`: requests, connections or bytes in `ms`; `userMs`, `systemMs`: the proxy's CPU time for them. */
export type L4Reading = {
  readonly figure: number;
  readonly userMs: number;
  readonly systemMs: number;
  readonly count: number;
  readonly ms: number;
};

export type SubjectSummary = {
  readonly name: SubjectName;
  readonly figure: Quartiles;
  /** How much of the CPU time is spent outside of the kernel, 0 to 1. */
  readonly userShare: number;
  /** To the figures of each reference in the same rounds. */
  readonly ratios: Readonly<Partial<Record<SubjectName, Quartiles>>>;
};

/** Whom the others are compared with: HAProxy and Envoy, and whoever a bar names; as far as they ran. */
export function referenceSubjectsFor({ bars, readings }: Pick<ScenarioResult, 'bars' | 'readings'>): SubjectName[] {
  const names = new Set<SubjectName>(['haproxy', 'envoy', ...(Object.keys(bars) as SubjectName[])]);
  return [...names].filter((name) => (readings[name] ?? []).length > 0);
}

/** One per subject: its figures, and their ratios. */
export function summariesFor({ bars, readings }: Pick<ScenarioResult, 'bars' | 'readings'>): SubjectSummary[] {
  const references = referenceSubjectsFor({ bars, readings });
  return (Object.keys(readings) as SubjectName[]).map((name) => {
    const own = figures(readings[name]);
    const others = references.filter((reference) => reference !== name);
    return {
      name,
      figure: quartilesOf(own),
      userShare: userShareOf(readings[name]),
      ratios: Object.fromEntries(
        others.map((other) => [other, quartilesOf(pairwiseRatios(own, figures(readings[other])))]),
      ),
    };
  });
}

function figures(readings: readonly L4Reading[] = []): number[] {
  return readings.map(({ figure }) => figure);
}

function userShareOf(readings: readonly L4Reading[] = []): number {
  const user = readings.reduce((sum, { userMs }) => sum + userMs, 0);
  const system = readings.reduce((sum, { systemMs }) => sum + systemMs, 0);
  return user / (user + system);
}
