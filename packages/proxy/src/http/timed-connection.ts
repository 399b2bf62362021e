import type { EndpointStats } from '@weir/model/data-plane';
import type { Outcome } from '../metering/outcome.ts';
import { CountedConnection } from '../relay/counted-connection.ts';
import type { Session } from '../relay/session.ts';
import { ticksFor } from '../relay/timeout-wheel.ts';
import type { Upstream } from '../upstream/upstream.ts';

/** The number of consecutive idle timeouts for which a throttled request may wait, see `TcpSession`. */
export const MAX_THROTTLED_IDLE_TIMEOUTS = 10;

/**
 * The deadline of a client connection in the timeout wheel. One deadline stands for all timeouts, of which at most one runs
 * at a time, and for the request timeout. A base class for the reason of `CountedConnection`.
 */
export abstract class TimedConnection extends CountedConnection implements Session {
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  #idleTicks = 0;
  /** How many consecutive idle timeouts have passed while the open request was throttled. */
  #throttledIdleTimeouts = 0;
  /** The tick in which the request timeout of the open request ends. Infinity without a request or timeout. */
  #requestDeadline = Number.POSITIVE_INFINITY;

  abstract readonly upstream: Upstream;
  /** Whether a request is open, so that the idle timeout of the Service applies. */
  protected abstract get hasRequest(): boolean;
  /** Whether a bandwidth limit lets the request wait. */
  protected abstract get isThrottled(): boolean;
  /** Called when a timeout has passed that `setDeadline` has begun. */
  protected abstract onTimeout(): void;
  protected abstract guarded(run: () => void): void;
  abstract readonly endpointStats: EndpointStats | undefined;
  abstract end(outcome: Outcome): void;
  abstract onEndpointUnavailable(): void;

  onExpired(): void {
    // The wheel has removed this connection, but most timeouts do not end it.
    this.context.wheel.add(this);
    this.guarded(() => this.onTimeout());
  }

  /** Begins the first timeout. */
  protected startDeadline(timeoutMs: number): void {
    const { wheel } = this.context;
    this.deadline = wheel.now + ticksFor(timeoutMs);
    wheel.add(this);
  }

  /** Applies the idle timeout of the Service from the next idle timeout on. To be called for each Service of the connection. */
  protected useIdleTimeout(): void {
    this.#idleTicks = ticksFor(this.upstream.route.settings.idleTimeoutMs);
  }

  /** Begins the request timeout of the Service. To be called with the first byte of a request. */
  protected startRequestTimeout(): void {
    const { requestTimeoutMs } = this.upstream.route.settings;
    if (requestTimeoutMs !== undefined) this.#requestDeadline = this.context.wheel.now + ticksFor(requestTimeoutMs);
  }

  /** Ends the request timeout. To be called when the request has its answer. */
  protected endRequestTimeout(): void {
    this.#requestDeadline = Number.POSITIVE_INFINITY;
  }

  protected get hasRequestTimedOut(): boolean {
    return this.context.wheel.now >= this.#requestDeadline;
  }

  /** Begins a timeout. The request timeout may end before. */
  protected setDeadline(timeoutMs: number): void {
    this.#setDeadlineTicks(ticksFor(timeoutMs));
  }

  /** Begins the idle timeout of the Service. */
  protected startIdleTimeout(): void {
    this.#setDeadlineTicks(this.#idleTicks);
  }

  protected override extendIdleDeadline(): void {
    if (!this.hasRequest) return;
    this.#throttledIdleTimeouts = 0;
    this.deadline = Math.min(this.context.wheel.now + this.#idleTicks, this.#requestDeadline);
  }

  /**
   * Begins another idle timeout and returns true if the open request is throttled, because the request is not idle then.
   */
  protected extendIfThrottled(): boolean {
    if (!this.hasRequest || !this.isThrottled) return false;
    this.#throttledIdleTimeouts += 1;
    if (this.#throttledIdleTimeouts > MAX_THROTTLED_IDLE_TIMEOUTS) return false;
    this.startIdleTimeout();
    return true;
  }

  #setDeadlineTicks(ticks: number): void {
    const { wheel } = this.context;
    this.deadline = Math.min(wheel.now + ticks, this.#requestDeadline);
    if (this.deadline < this.wheelSlot) wheel.advance(this);
  }
}
