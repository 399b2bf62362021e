/** Compares by UTF-16 code units, as `Array.sort` without a comparator does. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
