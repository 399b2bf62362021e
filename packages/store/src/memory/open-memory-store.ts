import { join } from 'node:path';
import { isInForce } from '@weir/model/data-plane';
import { type Clock, type Logger, systemClock } from '@weir/runtime';
import { MemoryStore, type StateSection } from './memory-store.ts';
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
  /** The path of the state directory. A missing directory is created. Only one process at a time can use a directory. */
  readonly directory: string;
  readonly log: Logger;
  readonly clock?: Clock;
}

/**
 * Opens a memory store that survives restarts: it keeps the table, the usage ledger, the incarnation numbers, and the suspensions that were
 * made in the store or come from files. Rejects with `StoreError` DAMAGED if the directory or a file in it is invalid or cannot be read or
 * written; the message says what to do.
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
  const pathOf = (section: StateSection): string => join(directory, `store-${section}.json`);
  const [table, lastIncarnations, ledger, suspensions] = await Promise.all([
    readState(pathOf('table'), TABLE_FORMAT),
    readState(pathOf('lives'), INCARNATIONS_FORMAT),
    readState(pathOf('ledger'), LEDGER_FORMAT),
    readState(pathOf('cutoffs'), SUSPENSIONS_FORMAT),
  ]);

  const writer = new StateWriter<StateSection>({ clock, log, write });
  const store = new MemoryStore({
    clock,
    onChange(section) {
      // The caller waits until these sections are written, so that after a crash no incarnation number is repeated and no suspension is
      // lost. The wait is short, because these sections are small.
      if (section === 'lives' || section === 'cutoffs') return writer.writeNow(section);
      writer.writeSoon(section);
    },
    onClose: () => writer.close().finally(() => lock.release()),
  });
  if (table !== undefined) store.table.content = table;
  if (lastIncarnations !== undefined) store.heartbeats.content = { lastIncarnations, heartbeats: new Map() };
  if (ledger !== undefined) store.usage.content = ledger;
  if (suspensions !== undefined) {
    for (const suspension of [...suspensions.suspensions.values()]) {
      if (!isInForce(suspension, clock.now())) suspensions.suspensions.delete(suspension.uid);
    }
    store.suspensions.content = suspensions;
  }
  return store;

  function write(section: StateSection): Promise<void> {
    switch (section) {
      case 'table':
        return writeState(pathOf(section), TABLE_FORMAT, store.table.content);
      case 'lives':
        return writeState(pathOf(section), INCARNATIONS_FORMAT, store.heartbeats.content.lastIncarnations);
      case 'ledger':
        return writeState(pathOf(section), LEDGER_FORMAT, store.usage.content);
      case 'cutoffs':
        return writeState(pathOf(section), SUSPENSIONS_FORMAT, store.suspensions.content);
    }
  }
}
