import type { Outcome } from '../metering/outcome.ts';
import type { Session } from './session.ts';
import type { TimeoutWheel } from './timeout-wheel.ts';

interface PendingEnd {
  readonly session: Session;
  readonly outcome: Outcome;
}

/** Ends many connections without holding up those that are to live. */
export class SessionTerminator {
  readonly #pendingEnds: BatchedAction<PendingEnd>;

  /** `onThrow` hears of one that could not be ended: the others are, all the same. */
  constructor(onThrow: (thrown: unknown) => void) {
    this.#pendingEnds = new BatchedAction(({ session, outcome }) => session.end(outcome), onThrow);
  }

  /** Those that are open now. One that ends by itself meanwhile keeps its own outcome. */
  terminate(members: Iterable<Session>, outcome: Outcome): void {
    this.#pendingEnds.add(pendingEndsOf(members, outcome));
  }
}

function* pendingEndsOf(members: Iterable<Session>, outcome: Outcome): Iterable<PendingEnd> {
  for (const session of members) yield { session, outcome };
}

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

const MAX_ITEMS_PER_TURN = 200;

/** Does something to many without holding up all others: at once to 200 of them, and to as many in each turn of the event loop. */
export class BatchedAction<T> {
  readonly #act: (item: T) => void;
  readonly #onThrow: (thrown: unknown) => void;
  #items: T[] = [];
  #nextIndex = 0;

  /** `onThrow` hears of one for which `act` threw: the others have theirs all the same. */
  constructor(act: (item: T) => void, onThrow: (thrown: unknown) => void) {
    this.#act = act;
    this.#onThrow = onThrow;
  }

  add(items: Iterable<T>): void {
    const isIdle = this.#items.length === 0;
    for (const item of items) this.#items.push(item);
    if (isIdle) this.#run();
  }

  readonly #run = (): void => {
    const end = Math.min(this.#nextIndex + MAX_ITEMS_PER_TURN, this.#items.length);
    for (; this.#nextIndex < end; this.#nextIndex += 1) this.#actOn(this.#items[this.#nextIndex] as T);
    if (this.#nextIndex < this.#items.length) {
      setImmediate(this.#run);
      return;
    }
    this.#items = [];
    this.#nextIndex = 0;
  };

  #actOn(item: T): void {
    try {
      this.#act(item);
    } catch (thrown) {
      this.#onThrow(thrown);
    }
  }
}
