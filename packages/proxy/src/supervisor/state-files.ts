// Copies of the last table (this node's part), of the suspensions and of the shares of limits on the disk. A proxy starts
// with these copies if the store is unreachable. A copy that cannot be decoded completely is ignored.
import { join } from 'node:path';
import {
  decodeEntry,
  type Entry,
  encodeEntry,
  isTablePosition,
  type Suspension,
  type TablePosition,
} from '@weir/model/data-plane';
import {
  type Clock,
  ensureDirectory,
  errorMessage,
  type Logger,
  readFileIfPresent,
  writeFileAtomic,
  writeFileUnsynced,
} from '@weir/runtime';
import type { KnownSuspensions, PositionedTable } from '@weir/store';
import type { SavedShares } from '../limits/lease-client.ts';
import { parseJsonObject } from './json-object.ts';

/** The number of entries in one chunk of the file. Encoding a chunk takes about a millisecond. */
const ENTRIES_PER_CHUNK = 200;

export class StateFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async readTable(): Promise<PositionedTable | undefined> {
    await ensureDirectory(this.#directory);
    return parsePlacedTable(await readFileIfPresent(this.#tablePath));
  }

  async writeTable({ table, position }: PositionedTable): Promise<void> {
    // Copies the entries now, because the table changes while this file is written.
    await writeFileAtomic(this.#tablePath, jsonChunks(position, [...table.entries.values()]));
  }

  async readSuspensions(): Promise<KnownSuspensions | undefined> {
    const synced = parseSuspensions(await readFileIfPresent(this.#suspensionsPath));
    const unsynced = parseSuspensions(await readFileIfPresent(this.#unsyncedSuspensionsPath));
    return (unsynced?.sequence ?? -1) > (synced?.sequence ?? -1) ? unsynced : synced;
  }

  /** Writes the suspensions to a second file, without waiting for the disk. `readSuspensions` uses the newer file. */
  writeSuspensionsUnsynced(known: KnownSuspensions): void {
    writeFileUnsynced(this.#unsyncedSuspensionsPath, suspensionsText(known));
  }

  async writeSuspensions(known: KnownSuspensions): Promise<void> {
    await writeFileAtomic(this.#suspensionsPath, suspensionsText(known));
  }

  async readShares(): Promise<SavedShares | undefined> {
    return parseShares(await readFileIfPresent(this.#sharesPath));
  }

  async writeShares(shares: SavedShares): Promise<void> {
    await writeFileAtomic(this.#sharesPath, JSON.stringify({ version: 1, shares: Object.fromEntries(shares) }));
  }

  get #tablePath(): string {
    return join(this.#directory, 'table.json');
  }

  get #suspensionsPath(): string {
    return join(this.#directory, 'cutoffs.json');
  }

  get #unsyncedSuspensionsPath(): string {
    return join(this.#directory, 'cutoffs-unsynced.json');
  }

  get #sharesPath(): string {
    return join(this.#directory, 'leases.json');
  }
}

/** Yields JSON in chunks, because encoding a large table at once would delay heartbeats and the next change. */
function* jsonChunks(position: TablePosition, entries: readonly Entry[]): Iterable<string> {
  yield `{"version":1,"position":${JSON.stringify(position)},"entries":[`;
  for (let from = 0; from < entries.length; from += ENTRIES_PER_CHUNK) {
    const texts = entries.slice(from, from + ENTRIES_PER_CHUNK).map((entry) => JSON.stringify(encodeEntry(entry)));
    yield `${from === 0 ? '' : ','}${texts.join(',')}`;
  }
  yield ']}';
}

function parsePlacedTable(text: string | undefined): PositionedTable | undefined {
  const content = parseJsonObject(text);
  if (content?.version !== 1 || !Array.isArray(content.entries) || !isTablePosition(content.position)) return undefined;
  const entries = new Map<string, Entry>();
  for (const encoded of content.entries) {
    const entry = typeof encoded === 'string' ? decodeEntry(encoded) : undefined;
    if (entry === undefined) return undefined;
    entries.set(entry.id, entry);
  }
  return { table: { entries }, position: content.position };
}

function suspensionsText(known: KnownSuspensions): string {
  return JSON.stringify({ version: 1, ...known });
}

function parseSuspensions(text: string | undefined): KnownSuspensions | undefined {
  const content = parseJsonObject(text);
  if (content?.version !== 1 || !Array.isArray(content.cutoffs) || !Number.isSafeInteger(content.sequence)) {
    return undefined;
  }
  const isValid = content.cutoffs.every(
    (suspension) => typeof suspension?.uid === 'string' && typeof suspension.target?.kind === 'string',
  );
  return isValid ? { cutoffs: content.cutoffs as Suspension[], sequence: content.sequence as number } : undefined;
}

function parseShares(text: string | undefined): SavedShares | undefined {
  const content = parseJsonObject(text);
  if (content?.version !== 1 || typeof content.shares !== 'object' || content.shares === null) return undefined;
  const shares = Object.entries(content.shares).filter(([, share]) => Number.isSafeInteger(share) && share >= 0);
  return new Map(shares as [string, number][]);
}

/**
 * After a write, the next write waits this many times as long as the write took. A large table is therefore written
 * less often.
 */
const WRITE_PAUSE_FACTOR = 20;

export interface StateSaverOptions {
  readonly files: StateFiles;
  readonly clock: Clock;
  readonly log: Logger;
  readonly table: () => PositionedTable | undefined;
  readonly suspensions: () => KnownSuspensions | undefined;
  readonly shares: () => SavedShares | undefined;
}

/**
 * Writes changed suspensions to the disk at once, because a restart without the store must not lift a new suspension.
 * Writes the other state once a second, less often if writing takes long. Logs only the first of several failed writes
 * in a row, and retries.
 */
export class StateSaver {
  readonly #options: StateSaverOptions;
  #writtenPosition: unknown;
  #writtenSuspensions: unknown;
  #writtenShares: unknown;
  #nextAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  /** Resolves when the last write of the suspensions has ended. */
  #savingSuspensions: Promise<void> = Promise.resolve();
  /** Resolves when the write that waits for the last write has ended. Undefined if no write waits. */
  #nextSave: Promise<void> | undefined;
  readonly #failedWrites = new Set<string>();

  constructor(options: StateSaverOptions) {
    this.#options = options;
  }

  /** Writes the state if it has changed and a write is due. To be called once a second. */
  tick(): void {
    void this.saveSuspensions();
    if (this.#running !== undefined || this.#options.clock.monotonic() < this.#nextAt) return;
    this.#running = this.#writeTableAndShares().finally(() => {
      this.#running = undefined;
    });
  }

  /**
   * Writes suspensions without waiting for the disk. To be called before the suspensions take effect, because a proxy
   * that is killed soon afterwards must not serve the target again. If the write fails, `saveSuspensions` logs the
   * failure and retries.
   */
  keepSuspensions(known: KnownSuspensions): void {
    try {
      this.#options.files.writeSuspensionsUnsynced(known);
    } catch {
      // Not logged, because `saveSuspensions` writes to the same directory and logs its failures.
    }
  }

  /**
   * Writes the suspensions if they have changed. To be called after each change. Resolves when all changes before the
   * call were written, or when the write has failed.
   */
  saveSuspensions(): Promise<void> {
    this.#nextSave ??= this.#savingSuspensions.then(() => {
      this.#nextSave = undefined;
      this.#savingSuspensions = this.#writeSuspensions();
      return this.#savingSuspensions;
    });
    return this.#nextSave;
  }

  async close(): Promise<void> {
    await Promise.all([this.#running, this.saveSuspensions()]);
    await this.#writeTableAndShares();
  }

  async #writeSuspensions(): Promise<void> {
    const { files, suspensions } = this.#options;
    await this.#writeOrLogFailure('suspensions', async () => {
      // The suspensions may change while they are written.
      for (
        let known = suspensions();
        known !== undefined && known !== this.#writtenSuspensions;
        known = suspensions()
      ) {
        await files.writeSuspensions(known);
        this.#writtenSuspensions = known;
      }
    });
  }

  async #writeTableAndShares(): Promise<void> {
    const { files, clock, table, shares } = this.#options;
    const startedAt = clock.monotonic();
    await this.#writeOrLogFailure('table', async () => {
      const placed = table();
      if (placed !== undefined && placed.position !== this.#writtenPosition) {
        await files.writeTable(placed);
        this.#writtenPosition = placed.position;
      }
      const held = shares();
      if (held !== undefined && held !== this.#writtenShares) {
        await files.writeShares(held);
        this.#writtenShares = held;
      }
    });
    this.#nextAt = clock.monotonic() + (clock.monotonic() - startedAt) * WRITE_PAUSE_FACTOR;
  }

  async #writeOrLogFailure(what: 'suspensions' | 'table', write: () => Promise<void>): Promise<void> {
    try {
      await write();
      this.#failedWrites.delete(what);
    } catch (error) {
      if (!this.#failedWrites.has(what))
        this.#options.log.error(
          { what, reason: errorMessage(error) },
          'failed to write the state to the disk; retrying',
        );
      this.#failedWrites.add(what);
    }
  }
}
