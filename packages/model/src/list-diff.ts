export interface ListDiff<T> {
  readonly removed: readonly T[];
  readonly added: readonly T[];
}

/**
 * The items that only one of two lists holds, compared by identity: sources keep an unchanged object. Lists mostly differ in a few
 * neighbouring items, so the common prefix and suffix are skipped first.
 */
export function diffLists<T>(before: readonly T[], after: readonly T[]): ListDiff<T> {
  let from = 0;
  const shorter = Math.min(before.length, after.length);
  while (from < shorter && before[from] === after[from]) from += 1;
  let tail = 0;
  while (tail < shorter - from && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const oldItems = new Set(before.slice(from, before.length - tail));
  const newItems = new Set(after.slice(from, after.length - tail));
  return {
    removed: [...oldItems].filter((item) => !newItems.has(item)),
    added: [...newItems].filter((item) => !oldItems.has(item)),
  };
}
