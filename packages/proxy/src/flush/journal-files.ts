// The journals in the state directory, one file per life of this proxy: what the ledger has not acknowledged survives us.
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Journal, journalFromText, journalToText } from '@weir/model/data-plane';
import { ensureDirectory, readFileIfPresent, writeFileAtomic } from '@weir/runtime';

/** What one life has counted. */
export interface LifeRecord {
  /** Undefined: it could not reach the store before it ended, and never had a number. */
  readonly life: number | undefined;
  readonly journal: Journal;
  /** When it was written last; milliseconds since the epoch. */
  readonly recordedAt: number;
}

export interface FoundRecord {
  readonly file: string;
  readonly record: LifeRecord;
}

const NAME = /^usage-(\d+|unnumbered-\d+)\.json$/;

export class JournalFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Every record, by life; `damaged` are files that cannot be read as one: they are left where they are. */
  async read(): Promise<{ readonly found: FoundRecord[]; readonly damaged: string[]; readonly highestLife: number }> {
    await ensureDirectory(this.#directory);
    const found: FoundRecord[] = [];
    const damaged: string[] = [];
    let highestLife = 0;
    for (const file of (await readdir(this.#directory)).sort()) {
      const life = NAME.exec(file)?.[1];
      if (life === undefined) continue;
      highestLife = Math.max(highestLife, Number(life) || 0);
      const record = parseRecord(await readFileIfPresent(join(this.#directory, file)));
      if (record === undefined) damaged.push(join(this.#directory, file));
      else found.push({ file, record });
    }
    found.sort((a, b) => (a.record.life ?? 0) - (b.record.life ?? 0));
    return { found, damaged, highestLife };
  }

  async write(file: string, { life, journal, recordedAt }: LifeRecord): Promise<void> {
    const content = { version: 1, life: life ?? null, recordedAt, journal: journalToText(journal) };
    await writeFileAtomic(join(this.#directory, file), JSON.stringify(content));
  }

  async remove(file: string): Promise<void> {
    await rm(join(this.#directory, file), { force: true });
  }
}

export function journalFileName(life: number | undefined, startedAt: number): string {
  return life === undefined ? `usage-unnumbered-${startedAt}.json` : `usage-${life}.json`;
}

function parseRecord(text: string | undefined): LifeRecord | undefined {
  try {
    const { version, life, recordedAt, journal: journalText } = JSON.parse(text ?? '');
    const journal = version === 1 && typeof journalText === 'string' ? journalFromText(journalText) : undefined;
    if (journal === undefined || !Number.isSafeInteger(recordedAt)) return undefined;
    if (life === null) return { life: undefined, journal, recordedAt };
    return Number.isSafeInteger(life) ? { life, journal, recordedAt } : undefined;
  } catch {
    return undefined;
  }
}
