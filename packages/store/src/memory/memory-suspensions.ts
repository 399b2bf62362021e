import type { Suspension } from '@weir/model/data-plane';
import type { SuspensionState, SuspensionStore } from '../contract.ts';
import type { MemoryConnection } from './memory-connection.ts';

export interface SuspensionContent {
  sequence: number;
  complete: boolean;
  readonly suspensions: Map<string, Suspension>;
  readonly removed: Set<string>;
}

export function emptySuspensionContent(): SuspensionContent {
  return { sequence: 0, complete: false, suspensions: new Map(), removed: new Set() };
}

export interface MemorySuspensionsOptions {
  readonly connection: MemoryConnection;
  readonly onChange: () => Promise<void>;
}

export class MemorySuspensions implements SuspensionStore {
  content: SuspensionContent = emptySuspensionContent();
  readonly #connection: MemoryConnection;
  readonly #onChange: () => Promise<void>;
  /** The highest sequence that this process has seen. Later sequences are higher, even if the store was wiped. */
  #highestSequence = 0;

  constructor({ connection, onChange }: MemorySuspensionsOptions) {
    this.#connection = connection;
    this.#onChange = onChange;
  }

  async put(suspension: Suspension): Promise<void> {
    this.#connection.assertReady();
    const { suspensions, removed } = this.content;
    const { uid } = suspension;
    const isKnown = JSON.stringify(suspensions.get(uid)) === JSON.stringify(suspension);
    if (isKnown && !removed.has(uid)) return;
    suspensions.set(uid, suspension);
    removed.delete(uid);
    await this.#changed();
  }

  async remove(uid: string): Promise<void> {
    this.#connection.assertReady();
    const { suspensions, removed, complete } = this.content;
    const wasListed = suspensions.delete(uid);
    const isNewRemoval = !complete && !removed.has(uid);
    if (isNewRemoval) removed.add(uid);
    if (wasListed || isNewRemoval) await this.#changed();
  }

  async markComplete(): Promise<void> {
    this.#connection.assertReady();
    if (this.content.complete) return;
    this.content.complete = true;
    this.content.removed.clear();
    await this.#changed();
  }

  async read(): Promise<SuspensionState> {
    this.#connection.assertReady();
    const { sequence, complete, suspensions, removed } = this.content;
    return {
      sequence,
      complete,
      suspensions: [...suspensions.values()].sort((a, b) => (a.uid < b.uid ? -1 : 1)),
      removed: [...removed].sort(),
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

  async #changed(): Promise<void> {
    this.#highestSequence = Math.max(this.#highestSequence, this.content.sequence) + 1;
    this.content.sequence = this.#highestSequence;
    this.#connection.changes.notify();
    await this.#onChange();
  }
}
