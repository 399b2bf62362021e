/** Orders texts by UTF-16 code units, as a comparator for `sort`. Unlike `localeCompare`, the order does not depend on the locale. */
export function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/**
 * Merges items (in any order) into a list that is sorted by `compare`. Returns a new sorted list, or `sorted` itself if there are no items.
 * Finds each position by binary search, because usually few items are merged into a long list.
 */
export function mergeSorted<T>(
  sorted: readonly T[],
  items: readonly T[],
  compare: (a: T, b: T) => number,
): readonly T[] {
  if (items.length === 0) return sorted;
  const merged: T[] = [];
  let next = 0;
  for (const item of [...items].sort(compare)) {
    const from = next;
    next = insertionIndex(item, sorted, { from, compare });
    for (const before of sorted.slice(from, next)) merged.push(before);
    merged.push(item);
  }
  for (const rest of sorted.slice(next)) merged.push(rest);
  return merged;
}

/** Returns the index of the first element, from `from` on, that sorts after the item. */
function insertionIndex<T>(
  item: T,
  sorted: readonly T[],
  { from, compare }: { readonly from: number; readonly compare: (a: T, b: T) => number },
): number {
  let [low, high] = [from, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(sorted[middle] as T, item) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface ListDiff<T> {
  readonly removed: readonly T[];
  readonly added: readonly T[];
}

/**
 * Returns the items that only one of two lists contains. Compares items by identity, because sources keep the object of an unchanged item.
 * Skips the common prefix and suffix first, because lists mostly differ in a few neighbouring items.
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

/** Whether two JSON values are equal; the order of keys does not matter. */
export function isJsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => isJsonEqual(item, b[i]))
    );
  }
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isJsonEqual(fieldOf(a, key), fieldOf(b, key)));
}

function fieldOf(value: object, key: string): unknown {
  return (value as Record<string, unknown>)[key];
}
