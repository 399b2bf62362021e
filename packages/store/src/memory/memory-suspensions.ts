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

export class MemorySuspensions implements SuspensionStore {
  content: SuspensionContent = emptySuspensionContent();
  readonly #connection: MemoryConnection;
  readonly #onChange: () => Promise<void>;
  /** The sequence goes on after a wipe, as far as this process knows it. */
  #highestSequence = 0;

  constructor({ gate, onChange }: { readonly gate: MemoryConnection; readonly onChange: () => Promise<void> }) {
    this.#connection = gate;
    this.#onChange = onChange;
  }

  async put(cutoff: Suspension): Promise<void> {
    this.#connection.assertReady();
    const { suspensions, removed } = this.content;
    const isKnown = JSON.stringify(suspensions.get(cutoff.uid)) === JSON.stringify(cutoff);
    if (isKnown && !removed.has(cutoff.uid)) return;
    suspensions.set(cutoff.uid, cutoff);
    removed.delete(cutoff.uid);
    await this.#changed();
  }

  async remove(uid: string): Promise<void> {
    this.#connection.assertReady();
    const { suspensions, removed, complete } = this.content;
    const wasListed = suspensions.delete(uid);
    const isNews = !complete && !removed.has(uid);
    if (isNews) removed.add(uid);
    if (wasListed || isNews) await this.#changed();
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
    let given: { content: SuspensionContent; sequence: number } | undefined;
    while (!signal.aborted) {
      this.#connection.assertReady();
      const { content } = this;
      if (given?.content === content && given.sequence === content.sequence) {
        await this.#connection.changes.wait(signal);
        continue;
      }
      given = { content, sequence: content.sequence };
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
