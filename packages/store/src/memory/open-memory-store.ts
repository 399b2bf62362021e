import { join } from 'node:path';
import { isInForce } from '@weir/model/data-plane';
import { type Clock, type Logger, systemClock } from '@weir/runtime';
import { createMemoryStore, type MemoryStore, type StateSection } from './memory-store.ts';
import {
  type DirectoryLock,
  lockDirectory,
  prepareStateDirectory,
  readState,
  StateWriter,
  writeState,
} from './state-directory.ts';
import { INCARNATIONS_FORMAT, LEDGER_FORMAT, SUSPENSIONS_FORMAT, TABLE_FORMAT } from './state-formats.ts';

export interface PersistentMemoryStoreOptions {
  /** Made if it is not there. One store at a time: the second one is refused. */
  readonly directory: string;
  readonly log: Logger;
  readonly clock?: Clock;
}

/**
 * The memory store with what a restart must not lose: the last table, the ledger, the cut-offs made in the store, the numbers
 * of lives. Rejects with `StoreError` DAMAGED when the directory or one of its files cannot be used, and says what to do.
 */
export async function openMemoryStore(options: PersistentMemoryStoreOptions): Promise<MemoryStore> {
  await prepareStateDirectory(options.directory);
  const lock = await lockDirectory(options.directory);
  try {
    return await openLocked(options, lock);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function openLocked(options: PersistentMemoryStoreOptions, lock: DirectoryLock): Promise<MemoryStore> {
  const { directory, log, clock = systemClock } = options;
  const pathOf = (part: StateSection): string => join(directory, `store-${part}.json`);
  const [table, lastIncarnations, ledger, cutoffs] = await Promise.all([
    readState(pathOf('table'), TABLE_FORMAT),
    readState(pathOf('lives'), INCARNATIONS_FORMAT),
    readState(pathOf('ledger'), LEDGER_FORMAT),
    readState(pathOf('cutoffs'), SUSPENSIONS_FORMAT),
  ]);

  const writer = new StateWriter<StateSection>({ clock, log, write });
  const store = createMemoryStore({
    clock,
    onChange(part) {
      // a number given out twice, or a cut-off forgotten, is worse than a moment's wait; they are short
      if (part === 'lives' || part === 'cutoffs') return writer.writeNow(part);
      writer.writeSoon(part);
    },
    onClose: () => writer.close().finally(() => lock.release()),
  });
  if (table !== undefined) store.table.content = table;
  if (lastIncarnations !== undefined) store.heartbeats.content = { lastIncarnations, heartbeats: new Map() };
  if (ledger !== undefined) store.usage.content = ledger;
  if (cutoffs !== undefined) {
    for (const cutoff of [...cutoffs.suspensions.values()]) {
      if (!isInForce(cutoff, clock.now())) cutoffs.suspensions.delete(cutoff.uid);
    }
    store.suspensions.content = cutoffs;
  }
  return store;

  function write(part: StateSection): Promise<void> {
    switch (part) {
      case 'table':
        return writeState(pathOf(part), TABLE_FORMAT, store.table.content);
      case 'lives':
        return writeState(pathOf(part), INCARNATIONS_FORMAT, store.heartbeats.content.lastIncarnations);
      case 'ledger':
        return writeState(pathOf(part), LEDGER_FORMAT, store.usage.content);
      case 'cutoffs':
        return writeState(pathOf(part), SUSPENSIONS_FORMAT, store.suspensions.content);
    }
  }
}
