import { join } from 'node:path';
import type { Clock, Logger } from '@weir/runtime';
import type { KnownSuspensions, PositionedTable, Store } from '@weir/store';
import type { SavedShares } from '../limits/lease-client.ts';
import { JournalFiles } from '../metering/journal-files.ts';
import { PastIncarnations } from '../metering/past-incarnations.ts';
import { StateFiles } from './state-files.ts';

/** The state that earlier incarnations left on the disk. */
export interface StateDirectory {
  /** The subdirectory of this node in the state directory. */
  readonly directory: string;
  readonly stateFiles: StateFiles;
  readonly journalFiles: JournalFiles;
  readonly pastIncarnations: PastIncarnations;
  readonly highestIncarnation: number;
  readonly table: PositionedTable | undefined;
  readonly cutoffs: KnownSuspensions | undefined;
  readonly shares: SavedShares | undefined;
}

export interface StateDirectoryOptions {
  readonly path: string;
  readonly node: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Opens the state directory of a node. Throws `FILE_FAILED` if the directory cannot be read. Damaged journals are
 * logged and left in place.
 */
export async function openStateDirectory(options: StateDirectoryOptions): Promise<StateDirectory> {
  const { path, node, store, clock, log } = options;
  // The prefix `proxy-` prevents a node name such as ".." from naming another directory, and avoids a collision with
  // files of the store.
  const directory = join(path, `proxy-${encodeURIComponent(node)}`);
  const stateFiles = new StateFiles(directory);
  const journalFiles = new JournalFiles(directory);
  const { found, damaged, highestIncarnation } = await journalFiles.read();
  for (const file of damaged) log.error({ file }, 'usage journal is damaged; its usage is not counted');
  const pastIncarnations = new PastIncarnations(found, { node, store, files: journalFiles, clock, log });
  return {
    directory,
    stateFiles,
    journalFiles,
    pastIncarnations,
    highestIncarnation,
    table: await stateFiles.readTable(),
    cutoffs: await stateFiles.readSuspensions(),
    shares: await stateFiles.readShares(),
  };
}
