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
