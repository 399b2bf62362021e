// Of thousands of Services most have no connection at the moment, or ever: what a worker was told of them stays the bytes that
// all workers share, until the first client comes or until it changes. Law: a worker that wakes them is where it would be if it had
// followed each at once.
import { type Change, idOf, listenerKeyOfId, type RouteKey, serviceOfChange } from '@weir/model/data-plane';
import type { PiecesOrder, Sleeper, TableOrder } from './messages.ts';
import { pieceOf } from './pieces.ts';

interface Asleep {
  readonly sleeper: Sleeper;
  readonly order: PiecesOrder;
  readonly index: number;
}

export class Sleepers {
  readonly #byService = new Map<string, Asleep>();
  readonly #byRoute = new Map<RouteKey, Asleep>();

  add(sleeper: Sleeper, order: PiecesOrder, index: number): void {
    const asleep = { sleeper, order, index };
    const [uid, ...routes] = sleeper;
    this.#byService.set(uid, asleep);
    for (const key of routes) this.#byRoute.set(key, asleep);
  }

  /** What is to be followed before the Service that has this route is there. */
  wakeAt(route: RouteKey): TableOrder | undefined {
    return this.#wake(this.#byRoute.get(route));
  }

  /** What is to be followed before `order`: of each Service that it touches. */
  *wakeFor({ changes, slots, limits = [] }: TableOrder): Iterable<TableOrder> {
    if (this.#byService.size === 0) return;
    for (const asleep of this.#touchedBy(changes, [...slots, ...limits])) {
      const order = this.#wake(asleep);
      if (order !== undefined) yield order;
    }
  }

  *#touchedBy(
    changes: readonly Change[],
    assigned: readonly (readonly [uid: string, ...unknown[]])[],
  ): Iterable<Asleep | undefined> {
    for (const change of changes) {
      yield this.#byService.get(serviceOfChange(change) ?? '');
      // Who has a listener that goes, or that is another's from now on.
      yield this.#byRoute.get(listenerKeyOfId(idOf(change)) ?? '');
    }
    for (const [uid] of assigned) yield this.#byService.get(uid);
  }

  #wake(asleep: Asleep | undefined): TableOrder | undefined {
    if (asleep === undefined) return undefined;
    const { sleeper, order, index } = asleep;
    const [uid, ...routes] = sleeper;
    this.#byService.delete(uid);
    for (const key of routes) this.#byRoute.delete(key);
    return pieceOf(order, index);
  }
}
