/** Orders texts by UTF-16 code units, as a comparator for `sort`. Unlike `localeCompare`, the order does not depend on the locale. */
export function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/**
 * Merges items into a sorted list. Takes a list that is sorted by `compare` and items in any order; returns a new sorted list, or
 * the same list if there are no items. Finds each position by binary search, because few items are merged into a long list.
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

/** The index of the first element, from `from` on, that sorts after the item. */
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
