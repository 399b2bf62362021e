import type { SliceObject } from '../snapshot.ts';
import type { ListDiff } from './changed-in.ts';

/** The slices of each Service, by `namespace/name`. */
export class SliceIndex {
  readonly #byService = new Map<string, readonly SliceObject[]>();

  /** Sorted by name. */
  of(service: { readonly namespace: string; readonly name: string }): readonly SliceObject[] {
    return this.#byService.get(`${service.namespace}/${service.name}`) ?? [];
  }

  /** Returns whose slices are others now. */
  update({ removed, added }: ListDiff<SliceObject>): ReadonlySet<string> {
    const leaving = Map.groupBy(removed, keyOf);
    const coming = Map.groupBy(added, keyOf);
    const touched = new Set([...leaving.keys(), ...coming.keys()]);
    for (const key of touched) {
      const left = new Set(leaving.get(key));
      const stays = (this.#byService.get(key) ?? []).filter((slice) => !left.has(slice));
      const all = [...stays, ...(coming.get(key) ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
      if (all.length === 0) this.#byService.delete(key);
      else this.#byService.set(key, all);
    }
    return touched;
  }
}

function keyOf({ namespace, serviceName }: SliceObject): string {
  return `${namespace}/${serviceName}`;
}
