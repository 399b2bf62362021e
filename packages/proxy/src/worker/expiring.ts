import type { Member } from '../relay/member.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';

const PER_TURN = 200;

/**
 * Ends what has been silent for too long, at most 200 in one turn of the event loop: when an endpoint falls silent, ten
 * thousand may be due in the same second, and those that are to live must not wait for them.
 */
export class Expiring {
  readonly #wheel: TimeoutWheel<Member>;
  readonly #onThrow: (thrown: unknown) => void;
  #isWaiting = false;

  /** `onThrow` hears of one that could not be ended: the others are, all the same. */
  constructor(wheel: TimeoutWheel<Member>, onThrow: (thrown: unknown) => void) {
    this.#wheel = wheel;
    this.#onThrow = onThrow;
  }

  /** To be called once per tick. */
  tick(): void {
    this.#wheel.tick();
    if (!this.#isWaiting) this.#run();
  }

  readonly #run = (): void => {
    this.#isWaiting = false;
    for (let ended = 0; ended < PER_TURN; ended += 1) {
      // One by one: the end of one may be that of others, and those are no longer due.
      const member = this.#wheel.takeDue();
      if (member === undefined) return;
      this.#expire(member);
    }
    this.#isWaiting = true;
    setImmediate(this.#run);
  };

  #expire(member: Member): void {
    try {
      member.onExpired();
    } catch (thrown) {
      this.#onThrow(thrown);
    }
  }
}
