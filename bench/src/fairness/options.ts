import { parseIntegerOption, parseNameListOption, parseOptions } from '../option-values.ts';
import { SELECTABLE_SUBJECTS, type SelectableSubjectName } from '../subjects/subject.ts';

/** Options that `l4` and `fairness` have in common. */
export type ComparisonOptions = {
  readonly rounds: number;
  /** Duration of one measurement. */
  readonly seconds: number;
  readonly subjects: readonly SelectableSubjectName[];
  /** True if `subjects` is the default. In this case, a subject whose program is missing is left out; the other subjects run. */
  readonly usesDefaultSubjects: boolean;
};

export type FairnessOptions = ComparisonOptions;

export const COMPARISON_DEFAULTS = { rounds: '10', seconds: '2' } as const;

export function parseFairnessArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'fairness'; readonly options: FairnessOptions } {
  const values = parseOptions(args, { defaults: COMPARISON_DEFAULTS, optional: ['subjects'] });
  if (values === 'help') return { kind: 'help' };
  return { kind: 'fairness', options: parseComparisonValues(values, ['weir', 'haproxy']) };
}

type ComparisonValues = { readonly rounds: string; readonly seconds: string; readonly subjects?: string };

export function parseComparisonValues(
  { rounds, seconds, subjects }: ComparisonValues,
  defaultSubjects: readonly SelectableSubjectName[],
): ComparisonOptions {
  return {
    rounds: parseIntegerOption('rounds', rounds, { min: 1, max: 100 }),
    seconds: parseIntegerOption('seconds', seconds, { min: 1, max: 30 }),
    subjects: subjects === undefined ? defaultSubjects : parseNameListOption('subjects', subjects, SELECTABLE_SUBJECTS),
    usesDefaultSubjects: subjects === undefined,
  };
}
