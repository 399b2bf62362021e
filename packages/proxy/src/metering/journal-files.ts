// Stores the usage journals in the state directory, one file per incarnation. Usage that the ledger has not
// acknowledged thereby survives a restart of the proxy.
import { randomUUID } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeJournal, encodeJournal, type Journal } from '@weir/model/data-plane';
import { ensureDirectory, readFileIfPresent, writeFileAtomic } from '@weir/runtime';

/** The usage of one incarnation. */
export interface IncarnationRecord {
  /** The number of the incarnation. Undefined if the incarnation ended before the store assigned a number to it. */
  readonly incarnation: number | undefined;
  readonly journal: Journal;
  /** Time of the last write, in milliseconds since the epoch. */
  readonly recordedAt: number;
}

export interface IncarnationFile {
  readonly file: string;
  readonly record: IncarnationRecord;
}

const JOURNAL_FILE_NAME = /^usage-(\d+|unnumbered-[\w-]+)\.json$/;

export class JournalFiles {
  readonly #directory: string;
  /** Settles after the last write or removal. */
  #last: Promise<void> = Promise.resolve();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /**
   * Reads all records, sorted by incarnation. Records without a number come first, sorted by time. `damaged` lists the
   * paths of files that cannot be decoded. These files stay on the disk.
   */
  async read(): Promise<{
    readonly found: IncarnationFile[];
    readonly damaged: string[];
    readonly highestIncarnation: number;
  }> {
    await ensureDirectory(this.#directory);
    const found: IncarnationFile[] = [];
    const damaged: string[] = [];
    let highestIncarnation = 0;
    for (const file of (await readdir(this.#directory)).sort()) {
      const life = JOURNAL_FILE_NAME.exec(file)?.[1];
      if (life === undefined) continue;
      highestIncarnation = Math.max(highestIncarnation, Number(life) || 0);
      const record = parseRecord(await readFileIfPresent(join(this.#directory, file)));
      if (record === undefined) damaged.push(join(this.#directory, file));
      else found.push({ file, record });
    }
    found.sort(
      ({ record: a }, { record: b }) => (a.incarnation ?? 0) - (b.incarnation ?? 0) || a.recordedAt - b.recordedAt,
    );
    return { found, damaged, highestIncarnation };
  }

  /** Writes and removals take effect in the order of the calls. */
  write(file: string, { incarnation, journal, recordedAt }: IncarnationRecord): Promise<void> {
    const content = { version: 1, life: incarnation ?? null, recordedAt, journal: encodeJournal(journal) };
    return this.#inOrder(() => writeFileAtomic(join(this.#directory, file), JSON.stringify(content)));
  }

  remove(file: string): Promise<void> {
    return this.#inOrder(() => rm(join(this.#directory, file), { force: true }));
  }

  #inOrder(run: () => Promise<void>): Promise<void> {
    const done = this.#last.then(run);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

export function journalFileName(incarnation: number): string {
  return `usage-${incarnation}.json`;
}

/**
 * Returns a new file name for an incarnation that has no number yet. The name is random and not a time, because two
 * processes may start at the same time of a clock that was set back.
 */
export function unnumberedJournalFileName(): string {
  return `usage-unnumbered-${randomUUID()}.json`;
}

function parseRecord(text: string | undefined): IncarnationRecord | undefined {
  try {
    const { version, life: incarnation, recordedAt, journal: journalText } = JSON.parse(text ?? '');
    const journal = version === 1 && typeof journalText === 'string' ? decodeJournal(journalText) : undefined;
    if (journal === undefined || !Number.isSafeInteger(recordedAt)) return undefined;
    if (incarnation === null) return { incarnation: undefined, journal, recordedAt };
    return Number.isSafeInteger(incarnation) ? { incarnation, journal, recordedAt } : undefined;
  } catch {
    return undefined;
  }
}
