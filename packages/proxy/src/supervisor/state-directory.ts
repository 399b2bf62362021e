import { join } from 'node:path';
import type { Clock, Logger } from '@weir/runtime';
import type { KnownSuspensions, PositionedTable, Store } from '@weir/store';
import { JournalFiles } from '../metering/journal-files.ts';
import { PastIncarnations } from '../metering/past-incarnations.ts';
import { StateFiles } from './state-files.ts';

/** What earlier lives left on the disk. */
export interface StateDirectory {
  /** Of this node alone. */
  readonly directory: string;
  readonly stateFiles: StateFiles;
  readonly journalFiles: JournalFiles;
  readonly pastIncarnations: PastIncarnations;
  readonly highestIncarnation: number;
  readonly table: PositionedTable | undefined;
  readonly cutoffs: KnownSuspensions | undefined;
}

export interface StateDirectoryOptions {
  readonly path: string;
  readonly node: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Opens the state directory; throws `FILE_FAILED` when it cannot be read. Damaged files are told, and left where they are. */
export async function openStateDirectory(options: StateDirectoryOptions): Promise<StateDirectory> {
  const { path, node, store, clock, log } = options;
  // With a word before it no name of a node is a path elsewhere, or a file of the store's.
  const directory = join(path, `proxy-${encodeURIComponent(node)}`);
  const stateFiles = new StateFiles(directory);
  const journalFiles = new JournalFiles(directory);
  const { found, damaged, highestLife: highestIncarnation } = await journalFiles.read();
  for (const file of damaged) log.error({ file }, 'this journal of usage is damaged; what it held is not counted');
  const pastIncarnations = new PastIncarnations(found, { node, store, files: journalFiles, clock, log });
  return {
    directory,
    stateFiles,
    journalFiles,
    pastIncarnations,
    highestIncarnation,
    table: await stateFiles.readTable(),
    cutoffs: await stateFiles.readSuspensions(),
  };
}
