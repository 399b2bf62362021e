import type { Session } from '../relay/session.ts';
import { type TimeoutWheel, ticksFor } from '../relay/timeout-wheel.ts';

/** How long a client may take to send a head. */
export const HEAD_TIMEOUT_MS = 10_000;
/** How long a connection may wait for its next request. */
export const KEEP_ALIVE_MS = 60_000;
/** How long the proxy waits for the client's FIN after the last response. */
export const LINGER_MS = 2_000;

/** The number of consecutive idle timeouts for which a throttled request may wait, see `TcpSession`. */
export const MAX_THROTTLED_IDLE_TIMEOUTS = 10;

/** A session whose deadline `RequestTimeouts` writes. */
interface TimedSession extends Session {
  deadline: number;
}

/**
 * The deadline of an HTTP session in the timeout wheel. At most one timeout runs at a time, besides the request
 * timeout. The deadline is the end of the timeout that ends first.
 */
export class RequestTimeouts {
  readonly #wheel: TimeoutWheel<Session>;
  readonly #session: TimedSession;
  #idleTicks = 0;
  /** How many consecutive idle timeouts have passed while the open request was throttled. */
  #throttledIdleTimeouts = 0;
  /** The tick in which the request timeout of the open request ends. Infinity without a request or timeout. */
  #requestDeadline = Number.POSITIVE_INFINITY;
  /** The tick in which the open request began. */
  #requestStart = 0;

  constructor(wheel: TimeoutWheel<Session>, session: TimedSession) {
    this.#wheel = wheel;
    this.#session = session;
  }

  /** Begins the first timeout. */
  start(timeoutMs: number): void {
    this.#session.deadline = Math.min(this.#wheel.now + ticksFor(timeoutMs), this.#requestDeadline);
    this.#wheel.add(this.#session);
  }

  /** Puts the session into the wheel again, which has removed the session because a timeout has passed. */
  restart(): void {
    this.#wheel.add(this.#session);
  }

  /** Ends all timeouts. */
  stop(): void {
    this.#wheel.remove(this.#session);
  }

  /** Begins a timeout. The request timeout may end before. */
  set(timeoutMs: number): void {
    this.#setTicks(ticksFor(timeoutMs));
  }

  /** Sets the duration of the next idle timeouts. */
  useIdleTimeout(timeoutMs: number): void {
    this.#idleTicks = ticksFor(timeoutMs);
  }

  startIdle(): void {
    this.#setTicks(this.#idleTicks);
  }

  /** Begins another idle timeout, because bytes have moved. */
  extendIdle(): void {
    this.#throttledIdleTimeouts = 0;
    this.#session.deadline = Math.min(this.#wheel.now + this.#idleTicks, this.#requestDeadline);
  }

  /** Begins another idle timeout for a request that waits for bandwidth. Returns false if it has waited too long. */
  extendThrottled(): boolean {
    if (this.hasRequestTimedOut) return false;
    this.#throttledIdleTimeouts += 1;
    if (this.#throttledIdleTimeouts > MAX_THROTTLED_IDLE_TIMEOUTS) return false;
    this.startIdle();
    return true;
  }

  /** Begins the request timeout, if the Service has one. To be called with the first byte of a request. */
  startRequest(timeoutMs: number | undefined): void {
    this.#requestStart = this.#wheel.now;
    this.#requestDeadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : this.#wheel.now + ticksFor(timeoutMs);
  }

  /** Adds a limit, if there is one, for the time since the first byte of the request. The shortest limit applies. */
  limitRequest(timeoutMs: number | undefined): void {
    if (timeoutMs === undefined) return;
    this.#requestDeadline = Math.min(this.#requestDeadline, this.#requestStart + ticksFor(timeoutMs));
    this.#setTicks(this.#session.deadline - this.#wheel.now);
  }

  /** Ends the request timeout. To be called when the request has its answer. */
  endRequest(): void {
    this.#requestDeadline = Number.POSITIVE_INFINITY;
  }

  get hasRequestTimedOut(): boolean {
    return this.#wheel.now >= this.#requestDeadline;
  }

  #setTicks(ticks: number): void {
    const session = this.#session;
    session.deadline = Math.min(this.#wheel.now + ticks, this.#requestDeadline);
    if (session.deadline < session.wheelSlot) this.#wheel.advance(session);
  }
}
