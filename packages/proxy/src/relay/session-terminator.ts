import type { Outcome } from '../metering/outcome.ts';
import { monotonicMs, TimeSlicedQueue } from '../worker/time-sliced-queue.ts';
import type { Session } from './session.ts';
import type { TimeoutWheel } from './timeout-wheel.ts';

/** How long one queue may act on sessions in one turn of the event loop. */
const SLICE_MS = 2;

/**
 * Acts on many sessions without delaying the other sessions: for at most 2 ms in each turn of the event loop, in the
 * order of `add`.
 */
export class SessionQueue {
  readonly #queue: TimeSlicedQueue;
  readonly #onThrow: (thrown: unknown) => void;

  /**
   * If acting on a session throws, calls `onThrow` and continues with the next session. `now` returns milliseconds of a
   * clock that never goes back.
   */
  constructor(onThrow: (thrown: unknown) => void, now: () => number = monotonicMs) {
    this.#onThrow = onThrow;
    this.#queue = new TimeSlicedQueue({ sliceMs: SLICE_MS, now });
  }

  get isBusy(): boolean {
    return this.#queue.isBusy;
  }

  /** Calls `act` for each session, when its turn comes. Takes a session from `sessions` only then. */
  add(sessions: Iterable<Session>, act: (session: Session) => void): void {
    this.#queue.add(this.#steps(sessions, act));
  }

  *#steps(sessions: Iterable<Session>, act: (session: Session) => void): Iterable<void> {
    for (const session of sessions) {
      try {
        act(session);
      } catch (thrown) {
        this.#onThrow(thrown);
      }
      yield;
    }
  }
}

/**
 * Ends many sessions without delaying other sessions. Cut-offs have a queue of their own, so that a cut-off does not wait
 * until thousands of drained sessions have ended.
 */
export class SessionTerminator {
  readonly #cutOffEnds: SessionQueue;
  readonly #otherEnds: SessionQueue;

  constructor(onThrow: (thrown: unknown) => void, now?: () => number) {
    this.#cutOffEnds = new SessionQueue(onThrow, now);
    this.#otherEnds = new SessionQueue(onThrow, now);
  }

  /**
   * Ends the sessions with `outcome`, step by step. A session that ends before its turn comes is counted with its own
   * outcome.
   */
  terminate(sessions: Iterable<Session>, outcome: Outcome): void {
    const queue = outcome === 'cut-off' ? this.#cutOffEnds : this.#otherEnds;
    // Copied, because sessions that start after this call must not be ended.
    queue.add([...sessions], (session) => session.end(outcome));
  }
}

/**
 * Calls `onExpired` for sessions whose deadline has passed. When an endpoint stops answering, ten thousand sessions may
 * expire in the same second. Active sessions must not wait until all expired sessions have ended.
 */
export class SessionExpirer {
  readonly #wheel: TimeoutWheel<Session>;
  readonly #queue: SessionQueue;

  constructor(wheel: TimeoutWheel<Session>, onThrow: (thrown: unknown) => void, now?: () => number) {
    this.#wheel = wheel;
    this.#queue = new SessionQueue(onThrow, now);
  }

  /** Must be called once per tick of the wheel. */
  tick(): void {
    this.#wheel.tick();
    if (!this.#queue.isBusy) this.#queue.add(dueSessions(this.#wheel), (session) => session.onExpired());
  }
}

/**
 * Takes the sessions one by one, because the end of one session may end other sessions, and a session that has ended must
 * not expire.
 */
function* dueSessions(wheel: TimeoutWheel<Session>): Iterable<Session> {
  for (let session = wheel.takeDue(); session !== undefined; session = wheel.takeDue()) yield session;
}
