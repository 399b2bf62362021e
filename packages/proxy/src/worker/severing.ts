import type { Outcome } from '../counters/outcome.ts';
import type { Member } from '../relay/member.ts';

const PER_TURN = 200;

interface Doomed {
  readonly member: Member;
  readonly outcome: Outcome;
}

/** Ends many connections without holding up those that are to live: at most 200 in one turn of the event loop. */
export class Severing {
  readonly #onThrow: (thrown: unknown) => void;
  #doomed: Doomed[] = [];
  #next = 0;

  /** `onThrow` hears of one that could not be ended: the others are, all the same. */
  constructor(onThrow: (thrown: unknown) => void) {
    this.#onThrow = onThrow;
  }

  /** Those that are open now. One that ends by itself meanwhile keeps its own outcome. */
  sever(members: Iterable<Member>, outcome: Outcome): void {
    const isIdle = this.#doomed.length === 0;
    for (const member of members) this.#doomed.push({ member, outcome });
    if (isIdle) this.#run();
  }

  readonly #run = (): void => {
    const end = Math.min(this.#next + PER_TURN, this.#doomed.length);
    for (; this.#next < end; this.#next += 1) {
      const item = this.#doomed[this.#next];
      if (item !== undefined) this.#end(item);
    }
    if (this.#next < this.#doomed.length) {
      setImmediate(this.#run);
      return;
    }
    this.#doomed = [];
    this.#next = 0;
  };

  #end({ member, outcome }: Doomed): void {
    try {
      member.end(outcome);
    } catch (thrown) {
      this.#onThrow(thrown);
    }
  }
}
