// Which listeners the workers were asked to open, who has, and which ports may not be closed everywhere yet.
import type { ListenerEntry, ListenerKey } from '@weir/model/data-plane';
import type { Door, Order } from '../worker/messages.ts';
import type { Opening } from './opening.ts';

export interface DoorsOptions {
  /** To all workers. */
  readonly post: (order: Order) => void;
  readonly workers: () => readonly number[];
  /** A mark that `reached` gets to when all workers have followed every order so far. */
  readonly mark: () => number;
  readonly reached: () => number;
}

export class Doors {
  readonly #options: DoorsOptions;
  readonly #openings = new Map<number, Opening>();
  /** Ports that workers may not have closed yet, by the mark at which they have. */
  readonly #closing = new Map<ListenerKey, number>();
  #nextId = 1;

  constructor(options: DoorsOptions) {
    this.#options = options;
  }

  /** Asks all workers; `settled` is called when they have answered, or nobody waits for them any more. */
  open(key: ListenerKey, { protocol, address, port }: ListenerEntry, settled: () => void): Opening {
    const { post, workers } = this.#options;
    const door = { id: this.#nextId++, key, protocol, address, port };
    const opening = { door, asked: new Set(workers()), listening: new Set<number>(), isConfirmed: false, settled };
    this.#openings.set(door.id, opening);
    post({ kind: 'listen', door });
    return opening;
  }

  shut({ door, settled }: Opening): void {
    const { post, mark } = this.#options;
    post({ kind: 'unlisten', door });
    this.#closing.set(door.key, mark());
    this.#openings.delete(door.id);
    settled();
  }

  isStillClosing(key: ListenerKey): boolean {
    const mark = this.#closing.get(key);
    return mark !== undefined && mark > this.#options.reached();
  }

  /** Once a second. */
  forgetClosed(): void {
    for (const [key, mark] of this.#closing) if (this.#options.reached() >= mark) this.#closing.delete(key);
  }

  /** Those that workers listen at, and how many do. */
  get inUse(): readonly { readonly door: Door; readonly workers: number }[] {
    return [...this.#openings.values()]
      .filter(({ isConfirmed, listening }) => isConfirmed && listening.size > 0)
      .map(({ door, listening }) => ({ door, workers: listening.size }));
  }

  get(door: number): Opening | undefined {
    return this.#openings.get(door);
  }

  /** What a new worker must open, too. */
  ordersFor(worker: number): Order[] {
    return [...this.#openings.values()].map(({ door, asked }) => {
      asked.add(worker);
      return { kind: 'listen', door };
    });
  }

  /** It listens there; returns the opening when this was the last answer that it waited for. */
  listens(worker: number, door: number): Opening | undefined {
    const opening = this.#openings.get(door);
    opening?.listening.add(worker);
    return opening && answered(opening, worker);
  }

  /** It has ended; returns the openings that waited for no other answer. */
  gone(worker: number): Opening[] {
    return [...this.#openings.values()].flatMap((opening) => {
      opening.listening.delete(worker);
      return answered(opening, worker) ?? [];
    });
  }
}

function answered(opening: Opening, worker: number): Opening | undefined {
  opening.asked.delete(worker);
  if (opening.asked.size > 0) return undefined;
  if (opening.listening.size > 0) opening.isConfirmed = true;
  opening.settled();
  return opening;
}
