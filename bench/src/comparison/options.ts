import { parseIntegerOption, parseNameListOption, parseOptions } from '../option-values.ts';
import type { SubjectName } from '../subjects/subject.ts';

/** Options of the benchmarks that compare proxies. */
export type ComparisonOptions<Name extends SubjectName> = {
  readonly rounds: number;
  /** Duration of one measurement. */
  readonly seconds: number;
  readonly subjects: readonly Name[];
  /** True if `subjects` is the default. In this case, a subject whose program is missing is left out; the other subjects run. */
  readonly usesDefaultSubjects: boolean;
  /** Folder for the CPU profiles of Weir's threads. The result of a run with profiles is not saved. */
  readonly profileDirectory?: string;
};

export const COMPARISON_DEFAULTS = { rounds: '10', seconds: '2' } as const;

type ComparisonValues = {
  readonly rounds: string;
  readonly seconds: string;
  readonly subjects?: string;
  readonly profile?: string;
};

export type SubjectChoice<Name extends SubjectName> = {
  readonly selectable: readonly Name[];
  /** The subjects that are measured if the user selects none. */
  readonly defaults: readonly Name[];
};

export function parseComparisonValues<Name extends SubjectName>(
  { rounds, seconds, subjects, profile }: ComparisonValues,
  { selectable, defaults }: SubjectChoice<Name>,
): ComparisonOptions<Name> {
  return {
    rounds: parseIntegerOption('rounds', rounds, { min: 1, max: 100 }),
    seconds: parseIntegerOption('seconds', seconds, { min: 1, max: 30 }),
    subjects: subjects === undefined ? defaults : parseNameListOption('subjects', subjects, selectable),
    usesDefaultSubjects: subjects === undefined,
    ...(profile === undefined ? {} : { profileDirectory: profile }),
  };
}

/** Returns the options of a benchmark with scenarios that the user can select. */
export function parseComparisonArguments<Name extends SubjectName, Scenario extends string>(
  args: readonly string[],
  { scenarios: known, ...subjects }: SubjectChoice<Name> & { readonly scenarios: readonly Scenario[] },
): 'help' | (ComparisonOptions<Name> & { readonly scenarios?: readonly Scenario[] }) {
  const values = parseOptions(args, {
    defaults: COMPARISON_DEFAULTS,
    optional: ['subjects', 'scenarios', 'profile'],
  });
  if (values === 'help') return 'help';
  const { scenarios } = values;
  return {
    ...parseComparisonValues(values, subjects),
    ...(scenarios === undefined ? {} : { scenarios: parseNameListOption('scenarios', scenarios, known) }),
  };
}
