import { join } from 'node:path';
import type { Clock, Logger } from '@weir/runtime';
import type { KnownCutoffs, PlacedTable, Store } from '@weir/store';
import { FormerLives } from './flush/former-lives.ts';
import { JournalFiles } from './flush/journal-files.ts';
import { StateCopy } from './table/state-copy.ts';

/** What earlier lives left on the disk. */
export interface ProxyDisk {
  /** Of this node alone. */
  readonly directory: string;
  readonly copy: StateCopy;
  readonly files: JournalFiles;
  readonly former: FormerLives;
  readonly highestLife: number;
  readonly table: PlacedTable | undefined;
  readonly cutoffs: KnownCutoffs | undefined;
}

export interface StateDirectoryOptions {
  readonly path: string;
  readonly node: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Opens the state directory; throws `FILE_FAILED` when it cannot be read. Damaged files are told, and left where they are. */
export async function openStateDirectory(options: StateDirectoryOptions): Promise<ProxyDisk> {
  const { path, node, store, clock, log } = options;
  // With a word before it no name of a node is a path elsewhere, or a file of the store's.
  const directory = join(path, `proxy-${encodeURIComponent(node)}`);
  const copy = new StateCopy(directory);
  const files = new JournalFiles(directory);
  const { found, damaged, highestLife } = await files.read();
  for (const file of damaged) log.error({ file }, 'this journal of usage is damaged; what it held is not counted');
  const former = new FormerLives(found, { node, store, files, clock, log });
  return {
    directory,
    copy,
    files,
    former,
    highestLife,
    table: await copy.readTable(),
    cutoffs: await copy.readCutoffs(),
  };
}
