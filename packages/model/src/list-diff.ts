export interface ListDiff<T> {
  readonly removed: readonly T[];
  readonly added: readonly T[];
}

/**
 * What is only in the one list, and only in the other: by identity, for sources keep an object until it says something else.
 * Lists are mostly the same but for a few neighbours, so what both begin and end with is skipped first.
 */
export function diffLists<T>(before: readonly T[], after: readonly T[]): ListDiff<T> {
  let from = 0;
  const shorter = Math.min(before.length, after.length);
  while (from < shorter && before[from] === after[from]) from += 1;
  let tail = 0;
  while (tail < shorter - from && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const [old, young] = [before.slice(from, before.length - tail), after.slice(from, after.length - tail)];
  const [olds, youngs] = [new Set(old), new Set(young)];
  return { removed: old.filter((item) => !youngs.has(item)), added: young.filter((item) => !olds.has(item)) };
}
