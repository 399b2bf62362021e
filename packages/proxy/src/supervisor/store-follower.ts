import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import {
  type FollowTableOptions,
  followSuspensions,
  followTable,
  type KnownSuspensions,
  type Store,
} from '@weir/store';

export interface StoreFollowerOptions extends Pick<FollowTableOptions, 'onTable' | 'onChanges'> {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Of the copy on the disk; told already. */
  readonly suspensions: KnownSuspensions | undefined;
  readonly onSuspensions: (known: KnownSuspensions) => void;
  /** The store does not tell: what is known is all there is for now. */
  readonly onAway: () => void;
  readonly signal: AbortSignal;
}

/**
 * Follows table and cut-offs until the signal aborts. The table is read whole at first, also when there is a copy on the
 * disk: that one holds only what this node served.
 */
export async function followStore(options: StoreFollowerOptions): Promise<void> {
  const { store, clock, log, suspensions, onSuspensions, onTable, onChanges, onAway, signal } = options;
  const awayFrom = (what: string) => ({
    onAway(error: Error): void {
      log.warn({ what, reason: errorMessage(error) }, 'store is away; what is known stays');
      onAway();
    },
    onBack: (): void => log.info({ what }, 'store is back'),
  });
  await Promise.all([
    followTable(store.table, {
      signal,
      clock,
      onTable,
      onChanges,
      onUnreadable: (ids) => log.warn({ entries: ids.length }, 'entries of a newer version stay as they were'),
      ...awayFrom('table'),
    }),
    followSuspensions(store.suspensions, {
      signal,
      clock,
      from: suspensions,
      onSuspensions: (list, sequence) => onSuspensions({ cutoffs: list, sequence }),
      ...awayFrom('cut-offs'),
    }),
  ]);
}
