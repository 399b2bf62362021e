import { join } from 'node:path';
import { isInForce } from '@weir/model/data-plane';
import { type Clock, type Logger, systemClock } from '@weir/runtime';
import { createMemoryStore, type MemoryStore, type StorePart } from './memory-store.ts';
import { type DirectoryLock, lockDirectory } from './state/directory-lock.ts';
import { prepareStateDirectory, readState, writeState } from './state/state-file.ts';
import { CUTOFFS_FORMAT, LEDGER_FORMAT, LIVES_FORMAT, TABLE_FORMAT } from './state/state-formats.ts';
import { StateWriter } from './state/state-writer.ts';

export interface KeptMemoryStoreOptions {
  /** Made if it is not there. One store at a time: the second one is refused. */
  readonly directory: string;
  readonly log: Logger;
  readonly clock?: Clock;
}

/**
 * The memory store with what a restart must not lose: the last table, the ledger, the cut-offs made in the store, the numbers
 * of lives. Rejects with `StoreError` DAMAGED when the directory or one of its files cannot be used, and says what to do.
 */
export async function openMemoryStore(options: KeptMemoryStoreOptions): Promise<MemoryStore> {
  await prepareStateDirectory(options.directory);
  const lock = await lockDirectory(options.directory);
  try {
    return await openLocked(options, lock);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function openLocked(options: KeptMemoryStoreOptions, lock: DirectoryLock): Promise<MemoryStore> {
  const { directory, log, clock = systemClock } = options;
  const pathOf = (part: StorePart): string => join(directory, `store-${part}.json`);
  const [table, lives, ledger, cutoffs] = await Promise.all([
    readState(pathOf('table'), TABLE_FORMAT),
    readState(pathOf('lives'), LIVES_FORMAT),
    readState(pathOf('ledger'), LEDGER_FORMAT),
    readState(pathOf('cutoffs'), CUTOFFS_FORMAT),
  ]);

  const writer = new StateWriter<StorePart>({ clock, log, write });
  const store = createMemoryStore({
    clock,
    onChange(part) {
      // a number given out twice, or a cut-off forgotten, is worse than a moment's wait; they are short
      if (part === 'lives' || part === 'cutoffs') return writer.now(part);
      writer.changed(part);
    },
    onClose: () => writer.close().finally(() => lock.release()),
  });
  if (table !== undefined) store.table.content = table;
  if (lives !== undefined) store.heartbeats.content = { lives, beats: new Map() };
  if (ledger !== undefined) store.usage.content = ledger;
  if (cutoffs !== undefined) {
    for (const cutoff of [...cutoffs.cutoffs.values()]) {
      if (!isInForce(cutoff, clock.now())) cutoffs.cutoffs.delete(cutoff.uid);
    }
    store.cutoffs.content = cutoffs;
  }
  return store;

  function write(part: StorePart): Promise<void> {
    switch (part) {
      case 'table':
        return writeState(pathOf(part), TABLE_FORMAT, store.table.content);
      case 'lives':
        return writeState(pathOf(part), LIVES_FORMAT, store.heartbeats.content.lives);
      case 'ledger':
        return writeState(pathOf(part), LEDGER_FORMAT, store.usage.content);
      case 'cutoffs':
        return writeState(pathOf(part), CUTOFFS_FORMAT, store.cutoffs.content);
    }
  }
}
