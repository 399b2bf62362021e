import { parseIntegerOption, parseNameListOption, parseOptions } from '../option-values.ts';
import { LIMIT_SUBJECTS, type LimitSubjectName } from './limit-subjects.ts';

export type LimitsOptions = {
  readonly subjects: readonly LimitSubjectName[];
  /** Seed of the random arrivals. */
  readonly seed: number;
};

export function parseLimitsArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'limits'; readonly options: LimitsOptions } {
  const values = parseOptions(args, { defaults: { subjects: LIMIT_SUBJECTS.join(), seed: '1' } });
  if (values === 'help') return { kind: 'help' };
  return {
    kind: 'limits',
    options: {
      subjects: parseNameListOption('subjects', values.subjects, LIMIT_SUBJECTS),
      seed: parseIntegerOption('seed', values.seed, { min: 1, max: 1_000_000 }),
    },
  };
}
