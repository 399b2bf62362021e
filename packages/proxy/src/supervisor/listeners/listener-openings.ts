// Which listeners the workers were asked to open, who has, and which ports may not be closed everywhere yet.
import type { ListenerEntry, ListenerKey } from '@weir/model/data-plane';
import type { ListenerConfig, WorkerCommand } from '../../worker/messages.ts';
import type { ListenerOpening } from './listener-states.ts';

export interface ListenerOpeningsOptions {
  /** To all workers. */
  readonly post: (order: WorkerCommand) => void;
  readonly workers: () => readonly number[];
  /** A mark that `reached` gets to when all workers have followed every order so far. */
  readonly mark: () => number;
  readonly reached: () => number;
}

export class ListenerOpenings {
  readonly #options: ListenerOpeningsOptions;
  readonly #openings = new Map<number, ListenerOpening>();
  /** Ports that workers may not have closed yet, by the mark at which they have. */
  readonly #closingMarks = new Map<ListenerKey, number>();
  #nextId = 1;

  constructor(options: ListenerOpeningsOptions) {
    this.#options = options;
  }

  /** Asks all workers; `settled` is called when they have answered, or nobody waits for them any more. */
  open(key: ListenerKey, { protocol, address, port }: ListenerEntry, settled: () => void): ListenerOpening {
    const { post, workers } = this.#options;
    const door = { id: this.#nextId++, key, protocol, address, port };
    const opening = {
      listener: door,
      pendingWorkers: new Set(workers()),
      listeningWorkers: new Set<number>(),
      isConfirmed: false,
      onSettled: settled,
    };
    this.#openings.set(door.id, opening);
    post({ kind: 'open-listener', listener: door });
    return opening;
  }

  close({ listener, onSettled }: ListenerOpening): void {
    const { post, mark } = this.#options;
    post({ kind: 'close-listener', listener });
    this.#closingMarks.set(listener.key, mark());
    this.#openings.delete(listener.id);
    onSettled();
  }

  isStillClosing(key: ListenerKey): boolean {
    const mark = this.#closingMarks.get(key);
    return mark !== undefined && mark > this.#options.reached();
  }

  /** Once a second. */
  forgetClosed(): void {
    for (const [key, mark] of this.#closingMarks) if (this.#options.reached() >= mark) this.#closingMarks.delete(key);
  }

  /** Those that workers listen at, and how many do. */
  get listening(): readonly { readonly listener: ListenerConfig; readonly workers: number }[] {
    return [...this.#openings.values()]
      .filter(({ isConfirmed, listeningWorkers }) => isConfirmed && listeningWorkers.size > 0)
      .map(({ listener, listeningWorkers }) => ({ listener, workers: listeningWorkers.size }));
  }

  get(door: number): ListenerOpening | undefined {
    return this.#openings.get(door);
  }

  /** What a new worker must open, too. */
  commandsForNewWorker(worker: number): WorkerCommand[] {
    return [...this.#openings.values()].map(({ listener, pendingWorkers }) => {
      pendingWorkers.add(worker);
      return { kind: 'open-listener', listener };
    });
  }

  /** It listens there; returns the opening when this was the last answer that it waited for. */
  recordListening(worker: number, door: number): ListenerOpening | undefined {
    const opening = this.#openings.get(door);
    opening?.listeningWorkers.add(worker);
    return opening && recordAnswer(opening, worker);
  }

  /** It has ended; returns the openings that waited for no other answer. */
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
