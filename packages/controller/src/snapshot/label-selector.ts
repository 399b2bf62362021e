import type { LabelRequirement, LabelSelector } from '@weir/model';
import type { Fields } from './fields.ts';
import { LABEL_KEY } from './formats.ts';

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;

/** metav1.LabelSelector; absent or empty selects everything. */
export function readLabelSelector(fields: Fields): LabelSelector {
  fields.refuseUnknown(['matchLabels', 'matchExpressions']);
  return Object.freeze({
    matchLabels: Object.freeze(fields.textMap('matchLabels')),
    matchExpressions: Object.freeze(fields.objects('matchExpressions').map(readRequirement)),
  });
}

function readRequirement(item: Fields): LabelRequirement {
  item.refuseUnknown(['key', 'operator', 'values']);
  if (!item.has('operator')) item.noteMissing('operator', OPERATORS.join(', '));
  const operator = item.oneOf('operator', OPERATORS, 'Exists');
  const values = item.texts('values');
  const takesValues = operator === 'In' || operator === 'NotIn';
  if (takesValues && values.length === 0) item.noteMissing('values', `at least one value for ${operator}`);
  if (!takesValues && values.length > 0) item.noteInvalid('values', `no values with ${operator}`);
  return Object.freeze({ key: item.requiredText('key', LABEL_KEY), operator, values: Object.freeze(values) });
}
