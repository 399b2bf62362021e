import type { Cutoff } from '@weir/model/data-plane';
import type { CutoffState, CutoffStore } from '../contract.ts';
import type { Gate } from './gate.ts';

export interface CutoffContent {
  sequence: number;
  complete: boolean;
  readonly cutoffs: Map<string, Cutoff>;
  readonly removed: Set<string>;
}

export function emptyCutoffContent(): CutoffContent {
  return { sequence: 0, complete: false, cutoffs: new Map(), removed: new Set() };
}

export class MemoryCutoffs implements CutoffStore {
  content: CutoffContent = emptyCutoffContent();
  readonly #gate: Gate;
  readonly #onChange: () => Promise<void>;
  /** The sequence goes on after a wipe, as far as this process knows it. */
  #highest = 0;

  constructor({ gate, onChange }: { readonly gate: Gate; readonly onChange: () => Promise<void> }) {
    this.#gate = gate;
    this.#onChange = onChange;
  }

  async put(cutoff: Cutoff): Promise<void> {
    this.#gate.pass();
    const { cutoffs, removed } = this.content;
    const isKnown = JSON.stringify(cutoffs.get(cutoff.uid)) === JSON.stringify(cutoff);
    if (isKnown && !removed.has(cutoff.uid)) return;
    cutoffs.set(cutoff.uid, cutoff);
    removed.delete(cutoff.uid);
    await this.#changed();
  }

  async remove(uid: string): Promise<void> {
    this.#gate.pass();
    const { cutoffs, removed, complete } = this.content;
    const wasListed = cutoffs.delete(uid);
    const isNews = !complete && !removed.has(uid);
    if (isNews) removed.add(uid);
    if (wasListed || isNews) await this.#changed();
  }

  async complete(): Promise<void> {
    this.#gate.pass();
    if (this.content.complete) return;
    this.content.complete = true;
    this.content.removed.clear();
    await this.#changed();
  }

  async read(): Promise<CutoffState> {
    this.#gate.pass();
    const { sequence, complete, cutoffs, removed } = this.content;
    return {
      sequence,
      complete,
      cutoffs: [...cutoffs.values()].sort((a, b) => (a.uid < b.uid ? -1 : 1)),
      removed: [...removed].sort(),
    };
  }

  async *watch(signal: AbortSignal): AsyncGenerator<CutoffState> {
    let given: { content: CutoffContent; sequence: number } | undefined;
    while (!signal.aborted) {
      this.#gate.pass();
      const { content } = this;
      if (given?.content === content && given.sequence === content.sequence) {
        await this.#gate.bell.rung(signal);
        continue;
      }
      given = { content, sequence: content.sequence };
      yield await this.read();
    }
  }

  async #changed(): Promise<void> {
    this.#highest = Math.max(this.#highest, this.content.sequence) + 1;
    this.content.sequence = this.#highest;
    this.#gate.bell.ring();
    await this.#onChange();
  }
}
