// The listeners that the workers were asked to open, the answers of each worker, and the ports that workers were asked
// to close but may still have open.
import type { ListenerEntry, ListenerKey } from '@weir/model/data-plane';
import type { ListenerConfig, WorkerCommand } from '../../worker/messages.ts';
import type { WorkerPool } from '../worker-pool.ts';
import type { ListenerOpening } from './listener-states.ts';

export interface ListenerOpeningsOptions {
  readonly pool: Pick<WorkerPool, 'post' | 'mark' | 'reached' | 'ids'>;
}

export class ListenerOpenings {
  readonly #pool: ListenerOpeningsOptions['pool'];
  readonly #openings = new Map<number, ListenerOpening>();
  /** For each port that is being closed, the mark at which all workers have closed the port. */
  readonly #closingMarks = new Map<ListenerKey, number>();
  #nextId = 1;

  constructor({ pool }: ListenerOpeningsOptions) {
    this.#pool = pool;
  }

  /** Asks all workers to listen. Calls `onSettled` when all workers have answered or the listener is closed. */
  open(key: ListenerKey, { protocol, address, port }: ListenerEntry, onSettled: () => void): ListenerOpening {
    const listener = { id: this.#nextId++, key, protocol, address, port };
    const opening = {
      listener,
      pendingWorkers: new Set(this.#pool.ids),
      listeningWorkers: new Set<number>(),
      isConfirmed: false,
      onSettled,
    };
    this.#openings.set(listener.id, opening);
    this.#pool.post({ kind: 'open-listener', listener });
    return opening;
  }

  close({ listener, onSettled }: ListenerOpening): void {
    this.#pool.post({ kind: 'close-listener', listener });
    this.#closingMarks.set(listener.key, this.#pool.mark());
    this.#openings.delete(listener.id);
    onSettled();
  }

  isStillClosing(key: ListenerKey): boolean {
    const mark = this.#closingMarks.get(key);
    return mark !== undefined && mark > this.#pool.reached;
  }

  /** Forgets ports that all workers have closed. To be called once a second. */
  forgetClosed(): void {
    const { reached } = this.#pool;
    for (const [key, mark] of this.#closingMarks) if (reached >= mark) this.#closingMarks.delete(key);
  }

  /** The listeners that are open, with the number of workers that listen. */
  get listening(): readonly { readonly listener: ListenerConfig; readonly workers: number }[] {
    return [...this.#openings.values()]
      .filter(({ isConfirmed, listeningWorkers }) => isConfirmed && listeningWorkers.size > 0)
      .map(({ listener, listeningWorkers }) => ({ listener, workers: listeningWorkers.size }));
  }

  get(listenerId: number): ListenerOpening | undefined {
    return this.#openings.get(listenerId);
  }

  commandsForNewWorker(worker: number): WorkerCommand[] {
    return [...this.#openings.values()].map(({ listener, pendingWorkers }) => {
      pendingWorkers.add(worker);
      return { kind: 'open-listener', listener };
    });
  }

  /** Records that a worker listens. Returns the opening if this was the last pending answer. */
  recordListening(worker: number, listenerId: number): ListenerOpening | undefined {
    const opening = this.#openings.get(listenerId);
    opening?.listeningWorkers.add(worker);
    return opening && recordAnswer(opening, worker);
  }

  /** Removes a worker that has ended. Returns the openings that have no pending answer any more. */
  removeWorker(worker: number): ListenerOpening[] {
    return [...this.#openings.values()].flatMap((opening) => {
      opening.listeningWorkers.delete(worker);
      return recordAnswer(opening, worker) ?? [];
    });
  }
}

function recordAnswer(opening: ListenerOpening, worker: number): ListenerOpening | undefined {
  opening.pendingWorkers.delete(worker);
  if (opening.pendingWorkers.size > 0) return undefined;
  if (opening.listeningWorkers.size > 0) opening.isConfirmed = true;
  opening.onSettled();
  return opening;
}
