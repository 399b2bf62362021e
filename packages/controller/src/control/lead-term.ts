import type { Leadership } from '../leader/leadership.ts';
import { LeadershipLost } from '../leader/only-in-the-lead.ts';

export interface LeaderTermSteps {
  readonly leader: Pick<Leadership, 'isLeader'>;
  /** Claims the table: from then on nobody else can write it. */
  claim(): Promise<void>;
  isClaimed(): boolean;
  /** Reads everything again. */
  readSource(signal: AbortSignal): Promise<void>;
  /** Finds out who of the fleet is there. */
  waitForProxies(signal: AbortSignal): Promise<void>;
}

/**
 * What comes before the first decision of each term in the lead. The claim first: whoever led before may decide of newer objects
 * than ours until then, so only what is read after it is sure to undo nothing.
 */
export class LeaderTerm {
  readonly #steps: LeaderTermSteps;
  #term = {};
  /** The term in which everything was read: with thousands of objects that is not done anew each time that the store is away. */
  #readTerm: object | undefined;
  #begunTerm: object | undefined;

  constructor(parts: LeaderTermSteps) {
    this.#steps = parts;
  }

  /** The lead was lost, or somebody else was found to have led: what is known may be old. */
  end(): void {
    this.#term = {};
  }

  /** At once where that was done in this term. Rejects when the store is away, and with `LeadLost`; then come again. */
  async begin(signal: AbortSignal): Promise<void> {
    const { leader, claim, readSource, waitForProxies } = this.#steps;
    for (;;) {
      if (!leader.isLeader) throw new LeadershipLost();
      if (this.#steps.isClaimed() && this.#begunTerm === this.#term) return;
      const term = this.#term;
      await claim();
      // A store that was wiped is claimed a second time in one term: nobody else has decided anything in it.
      if (this.#begunTerm === term) continue;
      if (this.#readTerm !== term) await readSource(signal);
      this.#readTerm = term;
      await waitForProxies(signal);
      this.#begunTerm = term;
    }
  }
}
