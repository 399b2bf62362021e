import { chargeToRate, rescaleDebt, takeWithinRate } from '@weir/model/data-plane';
import {
  type Direction,
  HELLO_PAID_UNTIL_FIELD,
  IN_BITS_PER_SECOND_FIELD,
  IN_PAID_UNTIL_FIELD,
  type LimiterState,
  MAX_NEW_PER_SECOND_FIELD,
  MAX_OPEN_FIELD,
  MAX_REQUESTS_PER_SECOND_FIELD,
  NEW_PAID_UNTIL_FIELD,
  OUT_BITS_PER_SECOND_FIELD,
  OUT_PAID_UNTIL_FIELD,
  REQUESTS_PAID_UNTIL_FIELD,
} from './limiter-state.ts';

export type LimiterRefusal = 'connection-limit' | 'rate-limit';

/**
 * The maximum burst of new connections or requests: a tenant may open as many connections at once as its rate allows in
 * this time. One second is long enough for browsers, which open several connections at a time.
 */
const COUNT_BURST_NS = 1_000_000_000n;
/**
 * The maximum burst of bytes: after a pause, as many bytes may pass at once as the rate allows in this time. The time
 * is short, so that a burst of one stream does not delay other streams for long.
 */
export const BYTES_BURST_NS = 50_000_000n;
const BITS_PER_BYTE = 8;

/**
 * The limits of one tenant or Service on this proxy, as seen by one worker. All workers share the row of the limiter.
 * Each worker counts its open connections in a separate cell of the row, so that the count of a dead worker can be
 * cleared.
 */
export class Limiter {
  readonly state: LimiterState;
  readonly row: number;
  readonly workerSlot: number;

  constructor(state: LimiterState, { row, workerSlot }: { readonly row: number; readonly workerSlot: number }) {
    state.ensureRow(row);
    this.state = state;
    this.row = row;
    this.workerSlot = workerSlot;
  }

  /**
   * Counts one more open connection and returns true, or returns false if the limit is reached. Adds before it
   * compares, so that workers that race never exceed the limit. Two workers that race for the last connection may both
   * be refused.
   */
  tryOpen(): boolean {
    const { state, row, workerSlot } = this;
    state.addOpen(row, workerSlot, 1);
    if (state.openCount(row) <= state.limit(row, MAX_OPEN_FIELD)) return true;
    state.addOpen(row, workerSlot, -1);
    return false;
  }

  openUnchecked(): void {
    this.state.addOpen(this.row, this.workerSlot, 1);
  }

  /** The number of connections that all workers have open. */
  get openCount(): number {
    return this.state.openCount(this.row);
  }

  /** The maximum number of open connections. Infinity if there is no limit. */
  get maxOpen(): number {
    return this.state.limit(this.row, MAX_OPEN_FIELD);
  }

  /** The maximum number of new connections per second. Infinity if there is no limit. */
  get newConnectionsPerSecond(): number {
    return this.state.limit(this.row, MAX_NEW_PER_SECOND_FIELD);
  }

  close(): void {
    this.state.addOpen(this.row, this.workerSlot, -1);
  }

  /**
   * Takes one token for a new connection and returns true, or returns false if the rate is exceeded. `now` returns
   * nanoseconds and is only called if the rate is limited.
   */
  tryTakeNew(now: () => bigint): boolean {
    return this.#tryTake(NEW_PAID_UNTIL_FIELD, this.newConnectionsPerSecond, now);
  }

  /** Takes one token for a ClientHello. ClientHellos have a token bucket of their own, with the rate of new connections. */
  tryTakeHello(now: () => bigint): boolean {
    return this.#tryTake(HELLO_PAID_UNTIL_FIELD, this.newConnectionsPerSecond, now);
  }

  /** Takes one token for an HTTP request. */
  tryTakeRequest(now: () => bigint): boolean {
    return this.#tryTake(REQUESTS_PAID_UNTIL_FIELD, this.state.limit(this.row, MAX_REQUESTS_PER_SECOND_FIELD), now);
  }

  #tryTake(field: number, ratePerSecond: number, now: () => bigint): boolean {
    const { state, row } = this;
    if (ratePerSecond === Number.POSITIVE_INFINITY) return true;
    const rate = { limit: { ratePerSecond, burstNs: COUNT_BURST_NS }, now: now() };
    for (;;) {
      const read = state.paidUntil(row, field);
      const next = takeWithinRate(read, 1, rate);
      if (next === undefined) return false;
      if (state.setPaidUntil(row, field, { read, next })) return true;
    }
  }

  /** Returns the bandwidth limit of this direction. Infinity if there is no limit. */
  bitsPerSecond(direction: Direction): number {
    return this.state.limit(this.row, direction === 'out' ? OUT_BITS_PER_SECOND_FIELD : IN_BITS_PER_SECOND_FIELD);
  }

  /** Whether the bytes of a direction are limited. */
  get limitsBandwidth(): boolean {
    return (
      this.bitsPerSecond('in') !== Number.POSITIVE_INFINITY || this.bitsPerSecond('out') !== Number.POSITIVE_INFINITY
    );
  }

  /**
   * Charges bytes that were transferred. Returns the time, in nanoseconds, until which the rate is used up after this
   * charge.
   */
  charge(direction: Direction, bytes: number, now: bigint): bigint {
    const { state, row } = this;
    const field = paidUntilFieldOf(direction);
    const limit = { ratePerSecond: this.bitsPerSecond(direction), burstNs: BYTES_BURST_NS };
    for (;;) {
      const read = state.paidUntil(row, field);
      const next = chargeToRate(read, bytes * BITS_PER_BYTE, { limit, now });
      if (state.setPaidUntil(row, field, { read, next })) return next;
    }
  }

  paidUntil(direction: Direction): bigint {
    return this.state.paidUntil(this.row, paidUntilFieldOf(direction));
  }
}

function paidUntilFieldOf(direction: Direction): number {
  return direction === 'out' ? OUT_PAID_UNTIL_FIELD : IN_PAID_UNTIL_FIELD;
}

const RATE_FIELDS = [
  { limitField: MAX_NEW_PER_SECOND_FIELD, paidUntilFields: [NEW_PAID_UNTIL_FIELD, HELLO_PAID_UNTIL_FIELD] },
  { limitField: IN_BITS_PER_SECOND_FIELD, paidUntilFields: [IN_PAID_UNTIL_FIELD] },
  { limitField: OUT_BITS_PER_SECOND_FIELD, paidUntilFields: [OUT_PAID_UNTIL_FIELD] },
  { limitField: MAX_REQUESTS_PER_SECOND_FIELD, paidUntilFields: [REQUESTS_PAID_UNTIL_FIELD] },
] as const;

/**
 * Writes the limits of a row. If a rate changes, converts the debts, so that a debt stays the same number of bytes or
 * connections. Only the main thread calls this function.
 */
export function configureLimiter(
  state: LimiterState,
  row: number,
  { limits, now }: { limits: LimiterConfig; now: bigint },
): void {
  state.setLimit(row, MAX_OPEN_FIELD, limits.connections);
  const { newConnectionsPerSecond, inBitsPerSecond, outBitsPerSecond, requestsPerSecond } = limits;
  const rates = [newConnectionsPerSecond, inBitsPerSecond, outBitsPerSecond, requestsPerSecond];
  for (const [index, { limitField, paidUntilFields }] of RATE_FIELDS.entries()) {
    const from = state.limit(row, limitField);
    const to = rates[index] as number;
    if (from === to) continue;
    for (const field of paidUntilFields) {
      for (;;) {
        const read = state.paidUntil(row, field);
        if (state.setPaidUntil(row, field, { read, next: rescaleDebt(read, { from, to, now }) })) break;
      }
    }
    state.setLimit(row, limitField, to);
  }
}

/** The limits of one tenant or Service on this proxy. Infinity means no limit. */
export interface LimiterConfig {
  readonly connections: number;
  readonly newConnectionsPerSecond: number;
  readonly inBitsPerSecond: number;
  readonly outBitsPerSecond: number;
  readonly requestsPerSecond: number;
}
