import { isDeepStrictEqual } from 'node:util';

/** Returns the key of an object. Keys sort by namespace and then by name, because names contain no NUL. */
export function objectKey(object: { readonly namespace?: string; readonly name: string }): string {
  return `${object.namespace ?? ''}\0${object.name}`;
}

/** The objects of one kind, sorted by `objectKey`. A change costs a binary search and an insertion into an array. */
export class SortedObjects<T extends { readonly namespace?: string; readonly name: string }> {
  readonly #keys: string[] = [];
  readonly #objects: T[] = [];
  #list: readonly T[] | undefined;

  get(key: string): T | undefined {
    const index = this.#indexOf(key);
    return this.#keys[index] === key ? this.#objects[index] : undefined;
  }

  keys(): readonly string[] {
    return this.#keys;
  }

  /**
   * Adds or replaces an object. If an equal object is present, keeps that object and returns false, so that a comparison by identity
   * shows no change.
   */
  set(object: T): boolean {
    const key = objectKey(object);
    const index = this.#indexOf(key);
    if (this.#keys[index] !== key) {
      this.#keys.splice(index, 0, key);
      this.#objects.splice(index, 0, object);
    } else {
      if (isDeepStrictEqual(this.#objects[index], object)) return false;
      this.#objects[index] = object;
    }
    this.#list = undefined;
    return true;
  }

  delete(key: string): boolean {
    const index = this.#indexOf(key);
    if (this.#keys[index] !== key) return false;
    this.#keys.splice(index, 1);
    this.#objects.splice(index, 1);
    this.#list = undefined;
    return true;
  }

  /** Returns a frozen list of the objects. The list is the same object until something changes. */
  list(): readonly T[] {
    this.#list ??= Object.freeze(this.#objects.slice());
    return this.#list;
  }

  /** Returns the index of the key, or the index at which to insert the key. */
  #indexOf(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#keys[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
