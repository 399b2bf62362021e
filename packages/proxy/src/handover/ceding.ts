import type { TablePosition } from '@weir/model/data-plane';
import { type Clock, formatHostPort, wait } from '@weir/runtime';
import type { Store } from '@weir/store';
import type { ListenerReconciler } from '../listeners/listener-book.ts';
import type { TableDistributor } from '../table/table-room.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { findUnsharedListener } from './beside-us.ts';
import type { TakeoverActions } from './holder.ts';

const CLOSE_POLL_INTERVAL_MS = 2;
/** For workers to close their listeners. One that takes longer is dead. */
const CLOSE_TIMEOUT_MS = 3_000;

export interface TakeoverActionsOptions {
  readonly listeners: ListenerReconciler;
  readonly table: Pick<TableDistributor, 'applied'>;
  readonly pool: () => Pick<WorkerPool, 'mark' | 'reached'>;
  readonly store: Pick<Store, 'connection'>;
  readonly clock: Clock;
  /** The successor is about to have the node. */
  readonly onCede: () => void;
}

/** What this proxy does when another one of its node asks to take over. */
export function createTakeoverActions({
  listeners,
  table,
  pool,
  store,
  clock,
  onCede,
}: TakeoverActionsOptions): TakeoverActions {
  return {
    mayTakeOver(applied, { isLeaving }) {
      const ours = table.applied;
      // The id of a revision is random: who has the same one follows the same store, and is no stranger of the same name.
      if (isLeaving || ours === null || applied.id === ours.id) return true;
      return store.connection === 'away' && isLater(applied, ours);
    },
    freeze() {
      listeners.setMode({ kind: 'frozen' });
      return listeners.open.map(({ door }) => door.key);
    },
    unfreeze: () => listeners.setMode({ kind: 'serving' }),
    async reasonToRefuse() {
      const own = listeners.open.map(({ door, workers }) => ({ protocol: door.protocol, at: door, sockets: workers }));
      const lone = await findUnsharedListener(own);
      if (lone === undefined) return undefined;
      const at = formatHostPort({ host: lone.at.address, port: lone.at.port });
      return `nobody of the same user listens on ${lone.protocol} ${at} yet`;
    },
    async cede() {
      listeners.setMode({ kind: 'silent' });
      onCede();
      const closed = pool().mark();
      const end = clock.monotonic() + CLOSE_TIMEOUT_MS;
      const isOver = (): boolean => pool().reached === 0 || pool().reached >= closed || clock.monotonic() > end;
      while (!isOver()) await wait(clock, CLOSE_POLL_INTERVAL_MS);
    },
  };
}

function isLater(a: TablePosition, b: TablePosition): boolean {
  return a.epoch === b.epoch ? a.revision > b.revision : a.epoch > b.epoch;
}
