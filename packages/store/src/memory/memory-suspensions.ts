import type { Suspension } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type { SuspensionAuditRecord, SuspensionRelease, SuspensionState, SuspensionStore } from '../contract.ts';
import { AUDIT_PAGE_SIZE, AUDIT_RETENTION_MS, MAX_AUDIT_RECORDS } from '../limits.ts';
import type { MemoryConnection } from './memory-connection.ts';

export interface SuspensionContent {
  sequence: number;
  completeSince: number | null;
  readonly suspensions: Map<string, Suspension>;
  /** As in `SuspensionState`. */
  readonly changes: Map<string, number>;
  /** Oldest first. The id of a record is a number. */
  audit: readonly SuspensionAuditRecord[];
}

export function emptySuspensionContent(): SuspensionContent {
  return { sequence: 0, completeSince: null, suspensions: new Map(), changes: new Map(), audit: [] };
}

export interface MemorySuspensionsOptions {
  readonly connection: MemoryConnection;
  readonly clock: Clock;
  readonly onChange: () => Promise<void>;
}

export class MemorySuspensions implements SuspensionStore {
  content: SuspensionContent = emptySuspensionContent();
  readonly #connection: MemoryConnection;
  readonly #clock: Clock;
  readonly #onChange: () => Promise<void>;
  /** The highest sequence that this process has seen. Later sequences are higher, even if the store was wiped. */
  #highestSequence = 0;

  constructor({ connection, clock, onChange }: MemorySuspensionsOptions) {
    this.#connection = connection;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  async put(suspension: Suspension, adopts?: string): Promise<void> {
    this.#connection.assertReady();
    const { suspensions, changes } = this.content;
    const { uid } = suspension;
    if (JSON.stringify(suspensions.get(uid)) === JSON.stringify(suspension)) return;
    suspensions.set(uid, suspension);
    if (adopts === undefined || !suspensions.has(adopts)) this.#record(suspension, null);
    changes.set(uid, this.#nextSequence());
    await this.#changed();
  }

  async remove(uid: string, release?: SuspensionRelease): Promise<void> {
    this.#connection.assertReady();
    const { suspensions, changes, completeSince } = this.content;
    const isListed = suspensions.delete(uid);
    const isRecorded = release !== undefined && (isListed || release.by !== undefined);
    if (isRecorded) {
      const { suspension, why, by } = release;
      this.#record(suspension, { why, ...(by === undefined ? {} : { by }) });
    }
    if (!isListed && (changes.has(uid) || completeSince !== null)) {
      if (isRecorded) await this.#onChange();
      return;
    }
    changes.set(uid, this.#nextSequence());
    await this.#changed();
  }

  async markComplete(known = 0): Promise<void> {
    this.#connection.assertReady();
    this.#highestSequence = Math.max(this.#highestSequence, known);
    const { suspensions, changes } = this.content;
    for (const uid of changes.keys()) if (!suspensions.has(uid)) changes.delete(uid);
    this.content.completeSince = this.#nextSequence();
    await this.#changed();
  }

  async read(): Promise<SuspensionState> {
    this.#connection.assertReady();
    const { sequence, completeSince, suspensions, changes } = this.content;
    return {
      sequence,
      completeSince,
      suspensions: [...suspensions.values()].sort((a, b) => (a.uid < b.uid ? -1 : 1)),
      changes: new Map(changes),
    };
  }

  async *watch(signal: AbortSignal): AsyncGenerator<SuspensionState> {
    let lastYielded: { content: SuspensionContent; sequence: number } | undefined;
    while (!signal.aborted) {
      this.#connection.assertReady();
      const { content } = this;
      if (lastYielded?.content === content && lastYielded.sequence === content.sequence) {
        await this.#connection.changes.wait(signal);
        continue;
      }
      lastYielded = { content, sequence: content.sequence };
      yield await this.read();
    }
  }

  async audit(before?: string): Promise<readonly SuspensionAuditRecord[]> {
    this.#connection.assertReady();
    const { audit } = this.content;
    const older = before === undefined ? audit : audit.filter(({ id }) => Number(id) < Number(before));
    return older.slice(-AUDIT_PAGE_SIZE).reverse();
  }

  #record(suspension: Suspension, release: SuspensionAuditRecord['release']): void {
    const { audit } = this.content;
    const at = Math.floor(this.#clock.now());
    const id = String(Number(audit.at(-1)?.id ?? 0) + 1);
    const kept = audit.filter((record) => record.at > at - AUDIT_RETENTION_MS);
    this.content.audit = [...kept, { id, at, suspension, release }].slice(-MAX_AUDIT_RECORDS);
  }

  #nextSequence(): number {
    this.#highestSequence = Math.max(
      Math.max(this.#highestSequence, this.content.sequence) + 1,
      Math.floor(this.#clock.now()),
    );
    this.content.sequence = this.#highestSequence;
    return this.#highestSequence;
  }

  async #changed(): Promise<void> {
    this.#connection.changes.notify();
    await this.#onChange();
  }
}
