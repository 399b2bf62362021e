import { isDeepStrictEqual } from 'node:util';

/** What objects are sorted by: it sorts as (namespace, name), since no name holds a NUL. */
export function objectKey(object: { readonly namespace?: string; readonly name: string }): string {
  return `${object.namespace ?? ''}\0${object.name}`;
}

/** The objects of one kind, sorted as the snapshot wants them. A change costs a binary search and a move of pointers. */
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

  /** False when it says what the one in its place says: then that one stays, so that whoever compares sees no change. */
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

  /** The same frozen list until something changes. */
  list(): readonly T[] {
    this.#list ??= Object.freeze(this.#objects.slice());
    return this.#list;
  }

  /** Where the key is, or belongs. */
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
