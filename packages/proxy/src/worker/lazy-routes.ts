import { type Change, entryIdOf, listenerKeyOfEntryId, type RouteKey, serviceOfChange } from '@weir/model/data-plane';
import type { LazyService, PackedTableCommand, TableCommand } from './messages.ts';

// Of thousands of Services most have no connection at the moment, or ever: what a worker was told of them stays the bytes that
// all workers share, until the first client comes or until it changes. Law: a worker that wakes them is where it would be if it had
// followed each at once.
interface LazyEntry {
  readonly service: LazyService;
  readonly packed: PackedTableCommand;
  readonly index: number;
}

export class LazyRoutes {
  readonly #byService = new Map<string, LazyEntry>();
  readonly #byRoute = new Map<RouteKey, LazyEntry>();

  add(sleeper: LazyService, order: PackedTableCommand, index: number): void {
    const asleep = { service: sleeper, packed: order, index };
    const [uid, ...routes] = sleeper;
    this.#byService.set(uid, asleep);
    for (const key of routes) this.#byRoute.set(key, asleep);
  }

  /** What is to be followed before the Service that has this route is there. */
  takeForRoute(route: RouteKey): TableCommand | undefined {
    return this.#take(this.#byRoute.get(route));
  }

  /** What is to be followed before `order`: of each Service that it touches. */
  *takeForCommand({ changes, slots, limits = [] }: TableCommand): Iterable<TableCommand> {
    if (this.#byService.size === 0) return;
    for (const asleep of this.#entriesChangedBy(changes, [...slots, ...limits])) {
      const order = this.#take(asleep);
      if (order !== undefined) yield order;
    }
  }

  *#entriesChangedBy(
    changes: readonly Change[],
    assigned: readonly (readonly [uid: string, ...unknown[]])[],
  ): Iterable<LazyEntry | undefined> {
    for (const change of changes) {
      yield this.#byService.get(serviceOfChange(change) ?? '');
      // Who has a listener that goes, or that is another's from now on.
      yield this.#byRoute.get(listenerKeyOfEntryId(entryIdOf(change)) ?? '');
    }
    for (const [uid] of assigned) yield this.#byService.get(uid);
  }

  #take(asleep: LazyEntry | undefined): TableCommand | undefined {
    if (asleep === undefined) return undefined;
    const { service, packed, index } = asleep;
    const [uid, ...routes] = service;
    this.#byService.delete(uid);
    for (const key of routes) this.#byRoute.delete(key);
    return unpackBatch(packed, index);
  }
}

/** The piece of this index, as it was packed. */
export function unpackBatch({ bytes, ends }: PackedTableCommand, index: number): TableCommand {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset).toString('utf8', ends[index - 1] ?? 0, ends[index]);
  return JSON.parse(text) as TableCommand;
}
