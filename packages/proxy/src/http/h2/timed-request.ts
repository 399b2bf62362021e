import type { EndpointStats } from '@weir/model/data-plane';
import type { Outcome } from '../../metering/outcome.ts';
import type { RelayContext, Session } from '../../relay/session.ts';
import { ticksFor } from '../../relay/timeout-wheel.ts';
import type { Upstream } from '../../upstream/upstream.ts';
import { MAX_THROTTLED_IDLE_TIMEOUTS } from '../timed-connection.ts';

/** The deadline of one HTTP/2 request in the timeout wheel: its connect timeout or idle timeout, and its request timeout. */
export abstract class TimedRequest implements Session {
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  protected readonly context: RelayContext;
  #idleTicks = 0;
  #requestDeadline = Number.POSITIVE_INFINITY;
  /** How many consecutive idle timeouts have passed while the response waited for bandwidth. */
  #throttledIdleTimeouts = 0;

  constructor(context: RelayContext) {
    this.context = context;
  }

  abstract readonly upstream: Upstream;
  abstract readonly endpointStats: EndpointStats | undefined;
  abstract end(outcome: Outcome): void;
  abstract onExpired(): void;
  abstract onEndpointUnavailable(): void;
  /** Whether a bandwidth limit lets the response wait. */
  protected abstract get isThrottled(): boolean;

  /** Begins the idle timeout and the request timeout of the Service. */
  protected startTimeouts(): void {
    const { idleTimeoutMs, requestTimeoutMs } = this.upstream.route.settings;
    const { wheel } = this.context;
    this.#idleTicks = ticksFor(idleTimeoutMs);
    if (requestTimeoutMs !== undefined) this.#requestDeadline = wheel.now + ticksFor(requestTimeoutMs);
    this.#startIdleTimeout();
    wheel.add(this);
  }

  /** Begins the connect timeout of the Service. */
  onConnecting(): void {
    const { wheel } = this.context;
    const { connectTimeoutMs } = this.upstream.route.settings;
    this.deadline = Math.min(wheel.now + ticksFor(connectTimeoutMs), this.#requestDeadline);
    if (this.deadline < this.wheelSlot) wheel.advance(this);
  }

  /** Begins another idle timeout, because bytes have moved. */
  protected extendIdleDeadline(): void {
    this.#throttledIdleTimeouts = 0;
    this.#startIdleTimeout();
  }

  /** Begins another idle timeout and returns true if the response is throttled, because the request is not idle then. */
  protected extendIfThrottled(): boolean {
    if (!this.isThrottled || this.hasTimedOut) return false;
    this.#throttledIdleTimeouts += 1;
    if (this.#throttledIdleTimeouts > MAX_THROTTLED_IDLE_TIMEOUTS) return false;
    this.#startIdleTimeout();
    return true;
  }

  /** Whether the request timeout has passed. */
  protected get hasTimedOut(): boolean {
    return this.context.wheel.now >= this.#requestDeadline;
  }

  protected endRequestTimeout(): void {
    this.#requestDeadline = Number.POSITIVE_INFINITY;
  }

  #startIdleTimeout(): void {
    this.deadline = Math.min(this.context.wheel.now + this.#idleTicks, this.#requestDeadline);
  }
}
