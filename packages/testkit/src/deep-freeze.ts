/** Freezes a value and everything that it holds, so that a function that changes its input throws. Returns the same value. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  // the content of typed arrays cannot be frozen, and Object.freeze refuses to try
  if (ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  if (value instanceof Map || value instanceof Set) freezeCollection(value);
  for (const key of Reflect.ownKeys(value)) deepFreeze((value as Record<PropertyKey, unknown>)[key]);
  return value;
}

/** Object.freeze leaves the entries of a Map or Set open: they live in internal slots. */
function freezeCollection(collection: Map<unknown, unknown> | Set<unknown>): void {
  for (const [key, value] of collection.entries()) {
    deepFreeze(key);
    deepFreeze(value);
  }
}
