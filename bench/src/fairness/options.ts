import { COMPARISON_DEFAULTS, type ComparisonOptions, parseComparisonValues } from '../comparison/options.ts';
import { parseOptions } from '../option-values.ts';
import { SELECTABLE_SUBJECTS, type SelectableSubjectName } from '../subjects/subject.ts';

export type FairnessOptions = ComparisonOptions<SelectableSubjectName>;

export function parseFairnessArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'fairness'; readonly options: FairnessOptions } {
  const values = parseOptions(args, { defaults: COMPARISON_DEFAULTS, optional: ['subjects'] });
  if (values === 'help') return { kind: 'help' };
  return {
    kind: 'fairness',
    options: parseComparisonValues(values, { selectable: SELECTABLE_SUBJECTS, defaults: ['weir', 'haproxy'] }),
  };
}
