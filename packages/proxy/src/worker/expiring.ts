import type { Session } from '../relay/member.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';

const MAX_EXPIRED_PER_TURN = 200;

/**
 * Ends what has been silent for too long, at most 200 in one turn of the event loop: when an endpoint falls silent, ten
 * thousand may be due in the same second, and those that are to live must not wait for them.
 */
export class SessionExpirer {
  readonly #wheel: TimeoutWheel<Session>;
  readonly #onThrow: (thrown: unknown) => void;
  #isScheduled = false;

  /** `onThrow` hears of one that could not be ended: the others are, all the same. */
  constructor(wheel: TimeoutWheel<Session>, onThrow: (thrown: unknown) => void) {
    this.#wheel = wheel;
    this.#onThrow = onThrow;
  }

  /** To be called once per tick. */
  tick(): void {
    this.#wheel.tick();
    if (!this.#isScheduled) this.#run();
  }

  readonly #run = (): void => {
    this.#isScheduled = false;
    for (let ended = 0; ended < MAX_EXPIRED_PER_TURN; ended += 1) {
      // One by one: the end of one may be that of others, and those are no longer due.
      const member = this.#wheel.takeDue();
      if (member === undefined) return;
      this.#expire(member);
    }
    this.#isScheduled = true;
    setImmediate(this.#run);
  };

  #expire(member: Session): void {
    try {
      member.onExpired();
    } catch (thrown) {
      this.#onThrow(thrown);
    }
  }
}
