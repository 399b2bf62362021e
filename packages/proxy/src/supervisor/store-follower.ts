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
  /** The suspensions from the copy on the disk, which are already in force. */
  readonly suspensions: KnownSuspensions | undefined;
  readonly onSuspensions: (known: KnownSuspensions) => void;
  /**
   * Called when the store becomes unreachable or holds no complete table. No newer state arrives until the store can be
   * read again.
   */
  readonly onAway: () => void;
  readonly signal: AbortSignal;
}

/**
 * Follows the table and the suspensions until the signal aborts. Reads the complete table first, because a copy on the
 * disk holds only this node's part.
 */
export async function followStore(options: StoreFollowerOptions): Promise<void> {
  const { store, clock, log, suspensions, onSuspensions, onTable, onChanges, onAway, signal } = options;
  const connectionHandlers = (what: string) => ({
    onAway(error: Error): void {
      log.warn({ what, reason: errorMessage(error) }, 'failed to read from the store; serving the last known state');
      onAway();
    },
    onBack: (): void => log.info({ what }, 'reading from the store again'),
    onReady: (listener: () => void) =>
      store.onConnectionChange((state) => {
        if (state === 'ready') listener();
      }),
  });
  await Promise.all([
    followTable(store.table, {
      signal,
      clock,
      onTable,
      onChanges,
      onUnreadable: (ids) =>
        log.warn(
          { entries: ids.length },
          'cannot decode table entries of a newer version; keeping the previous entries',
        ),
      ...connectionHandlers('table'),
    }),
    followSuspensions(store.suspensions, {
      signal,
      clock,
      from: suspensions,
      onSuspensions: (list, sequence) => onSuspensions({ cutoffs: list, sequence }),
      ...connectionHandlers('cut-offs'),
    }),
  ]);
}
