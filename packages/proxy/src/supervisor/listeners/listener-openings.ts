// The listeners that the workers were asked to open, the answers of each worker, and the ports that workers were asked
// to close but may still have open.
import type { ListenerEntry, ListenerKey } from '@weir/model/data-plane';
import type { ListenerConfig, WorkerCommand } from '../../worker/messages.ts';
import type { WorkerPool } from '../worker-pool.ts';
import type { ListenerOpening } from './listener-states.ts';

export interface ListenerOpeningsOptions {
  readonly pool: Pick<WorkerPool, 'post' | 'mark' | 'reached' | 'ids'>;
  /** How many descriptors all listeners may use. Each listener has one descriptor in each worker. */
  readonly maxListenerDescriptors: number;
}

/**
 * The maximum ratio of a tenant's listeners to the listeners that the proxy may still open, as for connections. A
 * single tenant can use three quarters of all listeners.
 */
const FAIR_SHARE_FACTOR = 3;

/** Whose listeners use all descriptors that they may use, so that no further listener may be opened. */
export type ListenerShortage = 'tenant' | 'proxy';

export class ListenerOpenings {
  readonly #pool: ListenerOpeningsOptions['pool'];
  readonly #maxDescriptors: number;
  /** The number of open listeners that each tenant does not share with other tenants. */
  readonly #countByTenant = new Map<string, number>();
  readonly #openings = new Map<number, ListenerOpening>();
  /** For each port that is being closed, the mark at which all workers have closed the port. */
  readonly #closingMarks = new Map<ListenerKey, number>();
  #nextId = 1;

  constructor({ pool, maxListenerDescriptors }: ListenerOpeningsOptions) {
    this.#pool = pool;
    this.#maxDescriptors = maxListenerDescriptors;
  }

  /** Returns why a tenant may not open a further listener; undefined if it may. `tenant` is null for a shared listener. */
  shortageFor(tenant: string | null): ListenerShortage | undefined {
    const free = Math.floor(this.#maxDescriptors / Math.max(1, this.#pool.ids.length)) - this.#openings.size;
    if (free < 1) return 'proxy';
    const own = tenant === null ? 0 : (this.#countByTenant.get(tenant) ?? 0);
    return own < FAIR_SHARE_FACTOR * free ? undefined : 'tenant';
  }

  /** Asks all workers to listen. Calls `onSettled` when all workers have answered or the listener is closed. */
  open(
    key: ListenerKey,
    { protocol, address, port }: ListenerEntry,
    { tenant, onSettled }: Pick<ListenerOpening, 'tenant' | 'onSettled'>,
  ): ListenerOpening {
    const listener = { id: this.#nextId++, key, protocol, address, port };
    const opening = {
      listener,
      pendingWorkers: new Set(this.#pool.ids),
      listeningWorkers: new Set<number>(),
      isConfirmed: false,
      tenant,
      onSettled,
    };
    this.#openings.set(listener.id, opening);
    this.#count(tenant, 1);
    this.#pool.post({ kind: 'open-listener', listener });
    return opening;
  }

  close({ listener, tenant, onSettled }: ListenerOpening): void {
    this.#pool.post({ kind: 'close-listener', listener });
    this.#closingMarks.set(listener.key, this.#pool.mark());
    if (this.#openings.delete(listener.id)) this.#count(tenant, -1);
    onSettled();
  }

  #count(tenant: string | null, change: 1 | -1): void {
    if (tenant === null) return;
    const count = (this.#countByTenant.get(tenant) ?? 0) + change;
    if (count === 0) this.#countByTenant.delete(tenant);
    else this.#countByTenant.set(tenant, count);
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
