import type { Leadership } from '../leader/leadership.ts';
import { LeadLost } from '../leader/only-in-the-lead.ts';

export interface LeadTermParts {
  readonly leader: Pick<Leadership, 'isLeader'>;
  /** Claims the table: from then on nobody else can write it. */
  claim(): Promise<void>;
  isClaimed(): boolean;
  /** Reads everything again. */
  read(signal: AbortSignal): Promise<void>;
  /** Finds out who of the fleet is there. */
  listen(signal: AbortSignal): Promise<void>;
}

/**
 * What comes before the first decision of each term in the lead. The claim first: whoever led before may decide of newer objects
 * than ours until then, so only what is read after it is sure to undo nothing.
 */
export class LeadTerm {
  readonly #parts: LeadTermParts;
  #term = {};
  /** The term in which everything was read: with thousands of objects that is not done anew each time that the store is away. */
  #read: object | undefined;
  #begun: object | undefined;

  constructor(parts: LeadTermParts) {
    this.#parts = parts;
  }

  /** The lead was lost, or somebody else was found to have led: what is known may be old. */
  end(): void {
    this.#term = {};
  }

  /** At once where that was done in this term. Rejects when the store is away, and with `LeadLost`; then come again. */
  async begin(signal: AbortSignal): Promise<void> {
    const { leader, claim, read, listen } = this.#parts;
    for (;;) {
      if (!leader.isLeader) throw new LeadLost();
      if (this.#parts.isClaimed() && this.#begun === this.#term) return;
      const term = this.#term;
      await claim();
      // A store that was wiped is claimed a second time in one term: nobody else has decided anything in it.
      if (this.#begun === term) continue;
      if (this.#read !== term) await read(signal);
      this.#read = term;
      await listen(signal);
      this.#begun = term;
    }
  }
}
