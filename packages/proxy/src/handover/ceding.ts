import type { Position } from '@weir/model/data-plane';
import { type Clock, formatHostPort, wait } from '@weir/runtime';
import type { Store } from '@weir/store';
import type { ListenerBook } from '../listeners/listener-book.ts';
import type { TableRoom } from '../table/table-room.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { firstWithoutOther } from './beside-us.ts';
import type { Ceding } from './holder.ts';

const LOOK_EACH_MS = 2;
/** For workers to close their listeners. One that takes longer is dead. */
const CLOSE_MS = 3_000;

export interface CedingOptions {
  readonly listeners: ListenerBook;
  readonly tables: Pick<TableRoom, 'applied'>;
  readonly pool: () => Pick<WorkerPool, 'mark' | 'reached'>;
  readonly store: Pick<Store, 'connection'>;
  readonly clock: Clock;
  /** The successor is about to have the node. */
  readonly onCede: () => void;
}

/** What this proxy does when another one of its node asks to take over. */
export function createCeding({ listeners, tables, pool, store, clock, onCede }: CedingOptions): Ceding {
  return {
    admits(applied, { isLeaving }) {
      const ours = tables.applied;
      // The id of a revision is random: who has the same one follows the same store, and is no stranger of the same name.
      if (isLeaving || ours === null || applied.id === ours.id) return true;
      return store.connection === 'away' && isLater(applied, ours);
    },
    freeze() {
      listeners.enter({ kind: 'frozen' });
      return listeners.open.map(({ door }) => door.key);
    },
    thaw: () => listeners.enter({ kind: 'serving' }),
    async objection() {
      const own = listeners.open.map(({ door, workers }) => ({ protocol: door.protocol, at: door, sockets: workers }));
      const lone = await firstWithoutOther(own);
      if (lone === undefined) return undefined;
      const at = formatHostPort({ host: lone.at.address, port: lone.at.port });
      return `nobody of the same user listens on ${lone.protocol} ${at} yet`;
    },
    async cede() {
      listeners.enter({ kind: 'silent' });
      onCede();
      const closed = pool().mark();
      const end = clock.monotonic() + CLOSE_MS;
      const isOver = (): boolean => pool().reached === 0 || pool().reached >= closed || clock.monotonic() > end;
      while (!isOver()) await wait(clock, LOOK_EACH_MS);
    },
  };
}

function isLater(a: Position, b: Position): boolean {
  return a.epoch === b.epoch ? a.revision > b.revision : a.epoch > b.epoch;
}
