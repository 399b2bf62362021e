import type { ListenerKey, TablePosition } from '@weir/model/data-plane';
import { formatHostPort } from '@weir/runtime';
import type { Store } from '@weir/store';
import type { ListenerReconciler } from '../supervisor/listeners/listener-reconciler.ts';
import type { TableDistributor } from '../supervisor/table/table-distributor.ts';
import type { WorkerPool } from '../supervisor/worker-pool.ts';
import { findUnsharedListener } from './shared-listeners.ts';

/** How long workers may take to close their listeners. A worker that takes longer is assumed to hang. */
const CLOSE_TIMEOUT_MS = 3_000;

export interface TakeoverActionsOptions {
  readonly listeners: ListenerReconciler;
  readonly table: Pick<TableDistributor, 'applied'>;
  readonly pool: Pick<WorkerPool, 'mark' | 'untilReached'>;
  readonly store: Pick<Store, 'connection'>;
  /** Called when the node is about to be handed over. */
  readonly onCede: () => void;
}

/** The actions of this proxy when another proxy of the node asks to take over. */
export class TakeoverActions {
  readonly #options: TakeoverActionsOptions;

  constructor(options: TakeoverActionsOptions) {
    this.#options = options;
  }

  /**
   * Reports whether a proxy that has applied the table at this position may take over. `isLeaving` is true if this
   * proxy is about to end.
   */
  mayTakeOver(applied: TablePosition, { isLeaving }: { readonly isLeaving: boolean }): boolean {
    const { table, store } = this.#options;
    const ownPosition = table.applied;
    // The id of a revision is random, so equal ids prove that the successor follows the same store, and not merely a
    // store of a fleet with the same name.
    if (isLeaving || ownPosition === null || applied.id === ownPosition.id) return true;
    return store.connection === 'away' && isLater(applied, ownPosition);
  }

  /** Stops opening and closing listeners. Returns the keys of the open listeners. */
  freeze(): readonly ListenerKey[] {
    const { listeners } = this.#options;
    listeners.setMode({ kind: 'frozen' });
    return listeners.open.map(({ listener }) => listener.key);
  }

  unfreeze(): void {
    this.#options.listeners.setMode({ kind: 'serving' });
  }

  /** Returns why the takeover is refused, or undefined if the successor listens on every address of this proxy. */
  async reasonToRefuse(): Promise<string | undefined> {
    const ownListeners = this.#options.listeners.open.map(({ listener, workers }) => ({
      protocol: listener.protocol,
      at: listener,
      sockets: workers,
    }));
    const unshared = await findUnsharedListener(ownListeners);
    if (unshared === undefined) return undefined;
    const address = formatHostPort({ host: unshared.at.address, port: unshared.at.port });
    return `no other process of the proxy's user listens on ${unshared.protocol} ${address} yet`;
  }

  /** Closes all listeners. Resolves when no worker listens any more. Open connections continue. */
  async cede(): Promise<void> {
    const { listeners, pool, onCede } = this.#options;
    listeners.setMode({ kind: 'silent' });
    onCede();
    await pool.untilReached(pool.mark(), CLOSE_TIMEOUT_MS);
  }
}

function isLater(a: TablePosition, b: TablePosition): boolean {
  return a.epoch === b.epoch ? a.revision > b.revision : a.epoch > b.epoch;
}
