import type { Outcome } from '../metering/outcome.ts';
import type { Session } from './session.ts';
import type { TimeoutWheel } from './timeout-wheel.ts';

const MAX_ITEMS_PER_ITERATION = 200;

/**
 * Calls a function for many items without delaying other connections: at once for up to 200 items, then for up to 200
 * more items in each iteration of the event loop.
 */
export class BatchedAction<T> {
  readonly #act: (item: T) => void;
  readonly #onThrow: (thrown: unknown) => void;
  #items: T[] = [];
  #nextIndex = 0;

  /** If `act` throws for an item, calls `onThrow` and continues with the next item. */
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
    const end = Math.min(this.#nextIndex + MAX_ITEMS_PER_ITERATION, this.#items.length);
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

interface PendingEnd {
  readonly session: Session;
  readonly outcome: Outcome;
}

/** Ends many sessions without delaying other sessions. */
export class SessionTerminator {
  readonly #pendingEnds: BatchedAction<PendingEnd>;

  /** If ending a session throws, calls `onThrow` and continues with the next session. */
  constructor(onThrow: (thrown: unknown) => void) {
    this.#pendingEnds = new BatchedAction(({ session, outcome }) => session.end(outcome), onThrow);
  }

  /**
   * Ends the sessions with `outcome`, in batches. A session that ends before its turn comes is counted with its own
   * outcome.
   */
  terminate(sessions: Iterable<Session>, outcome: Outcome): void {
    this.#pendingEnds.add(Array.from(sessions, (session) => ({ session, outcome })));
  }
}

const MAX_EXPIRED_PER_ITERATION = 200;

/**
 * Calls `onExpired` for sessions whose deadline has passed, for at most 200 in one iteration of the event loop. When an
 * endpoint stops answering, ten thousand sessions may expire in the same second. Active sessions must not wait until
 * all expired sessions have ended.
 */
export class SessionExpirer {
  readonly #wheel: TimeoutWheel<Session>;
  readonly #onThrow: (thrown: unknown) => void;
  #isScheduled = false;

  /** If ending a session throws, calls `onThrow` and continues with the next session. */
  constructor(wheel: TimeoutWheel<Session>, onThrow: (thrown: unknown) => void) {
    this.#wheel = wheel;
    this.#onThrow = onThrow;
  }

  /** Must be called once per tick of the wheel. */
  tick(): void {
    this.#wheel.tick();
    if (!this.#isScheduled) this.#run();
  }

  readonly #run = (): void => {
    this.#isScheduled = false;
    for (let expired = 0; expired < MAX_EXPIRED_PER_ITERATION; expired += 1) {
      // Takes the sessions one by one, because the end of one session may end other sessions, and a session that has
      // ended must not expire.
      const session = this.#wheel.takeDue();
      if (session === undefined) return;
      this.#expire(session);
    }
    this.#isScheduled = true;
    setImmediate(this.#run);
  };

  #expire(session: Session): void {
    try {
      session.onExpired();
    } catch (thrown) {
      this.#onThrow(thrown);
    }
  }
}
