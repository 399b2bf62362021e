// The last good table (as far as this node serves it) and cut-offs on the disk: what a proxy starts from when the store is
// away. Never half a table: a copy that cannot be read whole counts as none.
import { join } from 'node:path';
import { type Cutoff, decodeEntry, type Entry, encodeEntry, isPosition } from '@weir/model';
import { ensureDirectory, readFileIfPresent, writeFileAtomic } from '@weir/runtime';
import type { KnownCutoffs, PlacedTable } from '@weir/store';
import { parseJsonObject } from '../json-object.ts';

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
    const entries = [...table.entries.values()].map(encodeEntry);
    await writeFileAtomic(this.#tablePath, JSON.stringify({ version: 1, position, entries }));
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
