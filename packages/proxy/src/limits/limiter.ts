import { chargeToRate, type LeasedResource, rescalePaidUntil } from '@weir/model/data-plane';
import {
  type CountRate,
  type Direction,
  IN_BITS_PER_SECOND_FIELD,
  IN_BYTES_COUNTER,
  IN_PAID_UNTIL_FIELD,
  type LimiterState,
  MAX_NEW_PER_SECOND_FIELD,
  MAX_OPEN_FIELD,
  MAX_REQUESTS_PER_SECOND_FIELD,
  OUT_BITS_PER_SECOND_FIELD,
  OUT_BYTES_COUNTER,
  OUT_PAID_UNTIL_FIELD,
  REFUSED_OPEN_COUNTER,
  REQUESTS,
} from './limiter-state.ts';
import { SecondWindow } from './second-window.ts';

export type LimiterRefusal = 'connection-limit' | 'rate-limit';

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
  /** The windows by `CountRate`. They and the counters are created when they are first used, because most rows have no limits. */
  readonly #windows: (SecondWindow | undefined)[] = [];
  #counters: Float64Array | undefined;

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
    this.#addToCounter(REFUSED_OPEN_COUNTER, 1);
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
   * Counts one more unit of a rate and returns true, or returns false if the rate is exceeded. `now` returns nanoseconds
   * and is only called if the rate is limited. ClientHellos have the limit of new connections, but are counted separately.
   */
  tryTake(rate: CountRate, now: () => bigint): boolean {
    const limit = this.#perSecond(rate);
    if (limit === Number.POSITIVE_INFINITY) return true;
    this.#addToCounter(rate, 1);
    const window = this.#windows[rate] ?? new SecondWindow(this.state.windowCells(this.row, rate));
    this.#windows[rate] = window;
    return window.tryTake(limit, now());
  }

  /** Takes back the unit that the last call of `tryTake` counted, because another limit refuses it. */
  giveBack(rate: CountRate): void {
    if (this.#perSecond(rate) !== Number.POSITIVE_INFINITY) this.#windows[rate]?.giveBack();
  }

  #perSecond(rate: CountRate): number {
    return rate === REQUESTS ? this.state.limit(this.row, MAX_REQUESTS_PER_SECOND_FIELD) : this.newConnectionsPerSecond;
  }

  #addToCounter(counter: number, amount: number): void {
    this.#counters ??= this.state.workerCounters(this.row, this.workerSlot);
    this.#counters[counter] = (this.#counters[counter] as number) + amount;
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
    this.#addToCounter(direction === 'out' ? OUT_BYTES_COUNTER : IN_BYTES_COUNTER, bytes);
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

/**
 * Writes the limits of a row. If a bandwidth changes, converts its debt or credit, so that it stays the same number of
 * bytes. Only the main thread calls this function.
 */
export function configureLimiter(
  state: LimiterState,
  row: number,
  { limits, now }: { limits: LimiterConfig; now: bigint },
): void {
  state.setLimit(row, MAX_OPEN_FIELD, limits.connections);
  state.setLimit(row, MAX_NEW_PER_SECOND_FIELD, limits.newConnectionsPerSecond);
  state.setLimit(row, MAX_REQUESTS_PER_SECOND_FIELD, limits.requestsPerSecond);
  for (const [limitField, paidUntilField, to] of [
    [IN_BITS_PER_SECOND_FIELD, IN_PAID_UNTIL_FIELD, limits.inBitsPerSecond],
    [OUT_BITS_PER_SECOND_FIELD, OUT_PAID_UNTIL_FIELD, limits.outBitsPerSecond],
  ] as const) {
    const from = state.limit(row, limitField);
    if (from === to) continue;
    for (;;) {
      const read = state.paidUntil(row, paidUntilField);
      const next = rescalePaidUntil(read, { from, to, now, burstNs: BYTES_BURST_NS });
      if (state.setPaidUntil(row, paidUntilField, { read, next })) break;
    }
    state.setLimit(row, limitField, to);
  }
}

/** The limits of one tenant or Service on this proxy. Infinity means no limit. */
export type LimiterConfig = Readonly<Record<LeasedResource, number>>;
