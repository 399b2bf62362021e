// The last good table (as far as this node serves it) and cut-offs on the disk: what a proxy starts from when the store is
// away. Never half a table: a copy that cannot be read whole counts as none.
import { join } from 'node:path';
import { type Cutoff, decodeEntry, type Entry, encodeEntry, isPosition, type Position } from '@weir/model/data-plane';
import { ensureDirectory, readFileIfPresent, writeFileAtomic } from '@weir/runtime';
import type { KnownCutoffs, PlacedTable } from '@weir/store';
import { parseJsonObject } from '../json-object.ts';

/** A millisecond of work. */
const ENTRIES_PER_PIECE = 200;

export class StateCopy {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async readTable(): Promise<PlacedTable | undefined> {
    await ensureDirectory(this.#directory);
    return parsePlacedTable(await readFileIfPresent(this.#tablePath));
  }

  async writeTable({ table, position }: PlacedTable): Promise<void> {
    // All of them now: the table goes on changing while this one is written.
    await writeFileAtomic(this.#tablePath, piecesOf(position, [...table.entries.values()]));
  }

  async readCutoffs(): Promise<KnownCutoffs | undefined> {
    return parseCutoffs(await readFileIfPresent(this.#cutoffsPath));
  }

  async writeCutoffs(known: KnownCutoffs): Promise<void> {
    await writeFileAtomic(this.#cutoffsPath, JSON.stringify({ version: 1, ...known }));
  }

  get #tablePath(): string {
    return join(this.#directory, 'table.json');
  }

  get #cutoffsPath(): string {
    return join(this.#directory, 'cutoffs.json');
  }
}

/** JSON in pieces: a large table as one text would keep the process from its heartbeats and from the next change. */
function* piecesOf(position: Position, entries: readonly Entry[]): Iterable<string> {
  yield `{"version":1,"position":${JSON.stringify(position)},"entries":[`;
  for (let from = 0; from < entries.length; from += ENTRIES_PER_PIECE) {
    const texts = entries.slice(from, from + ENTRIES_PER_PIECE).map((entry) => JSON.stringify(encodeEntry(entry)));
    yield `${from === 0 ? '' : ','}${texts.join(',')}`;
  }
  yield ']}';
}

function parsePlacedTable(text: string | undefined): PlacedTable | undefined {
  const content = parseJsonObject(text);
  if (content?.version !== 1 || !Array.isArray(content.entries) || !isPosition(content.position)) return undefined;
  const entries = new Map<string, Entry>();
  for (const encoded of content.entries) {
    const entry = typeof encoded === 'string' ? decodeEntry(encoded) : undefined;
    if (entry === undefined) return undefined;
    entries.set(entry.id, entry);
  }
  return { table: { entries }, position: content.position };
}

function parseCutoffs(text: string | undefined): KnownCutoffs | undefined {
  const content = parseJsonObject(text);
  if (content?.version !== 1 || !Array.isArray(content.cutoffs) || !Number.isSafeInteger(content.sequence)) {
    return undefined;
  }
  const isWhole = content.cutoffs.every(
    (cutoff) => typeof cutoff?.uid === 'string' && typeof cutoff.target?.kind === 'string',
  );
  return isWhole ? { cutoffs: content.cutoffs as Cutoff[], sequence: content.sequence as number } : undefined;
}
