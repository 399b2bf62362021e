import {
  chargeToRate,
  type LeasedResource,
  type RateChange,
  type RateLimit,
  type RateResource,
  rateBurstNs,
  rescalePaidUntil,
  takeWithinRate,
} from '@weir/model/data-plane';
import {
  type CountRate,
  type Direction,
  FIRST_RATE_PAID_UNTIL_FIELD,
  HELLOS,
  IN_BITS_PER_SECOND_FIELD,
  IN_BYTES_COUNTER,
  IN_PAID_UNTIL_FIELD,
  type LimiterState,
  MAX_NEW_PER_SECOND_FIELD,
  MAX_OPEN_FIELD,
  MAX_REQUESTS_PER_SECOND_FIELD,
  MEAN_NEW_PER_SECOND_FIELD,
  MEAN_REQUESTS_PER_SECOND_FIELD,
  NEW_CONNECTIONS,
  OUT_BITS_PER_SECOND_FIELD,
  OUT_BYTES_COUNTER,
  OUT_PAID_UNTIL_FIELD,
  REFUSED_OPEN_COUNTER,
  REQUESTS,
} from './limiter-state.ts';
import { SecondWindow } from './second-window.ts';
import type { TenantBuffers } from './tenant-buffers.ts';

export type LimiterRefusal = 'connection-limit' | 'rate-limit';

/**
 * The maximum burst of bytes: after a pause, as many bytes may pass at once as the rate allows in this time. The time
 * is short, so that a burst of one stream does not delay other streams for long.
 */
export const BYTES_BURST_NS = 50_000_000n;
const BITS_PER_BYTE = 8;
/**
 * A worker takes the units that a rate allows in this time from the shared memory in one batch, and then admits them
 * without the shared memory. A batch has at least two units, so this applies from 20,000 units per second on. Access to
 * the shared memory takes about as long as relaying a small request.
 */
const BATCH_SECONDS = 0.000_1;
/**
 * After this time, the length of a slot of the `SecondWindow`, a worker discards the rest of a batch. Each worker
 * therefore leaves at most a hundredth of a rate unused.
 */
const MAX_BATCH_AGE_MS = 10;

/**
 * How many connections of one worker another worker may not see yet. The number is generous: a write without `Atomics` is
 * visible within a microsecond, and a worker opens at most one connection in that time.
 */
export const MAX_UNSEEN_OPENS = 16;

/**
 * The limits of one tenant or Service on this proxy, as seen by one worker. All workers share the row of the limiter.
 * Each worker counts its open connections in a separate cell of the row, so that the count of a dead worker can be
 * cleared.
 */
export class Limiter {
  readonly state: LimiterState;
  readonly row: number;
  readonly workerSlot: number;
  /** What the connections of the tenant buffer in this worker. Only `WorkerBuffers` uses this field. */
  buffers: TenantBuffers | undefined;
  /** By `CountRate`. Created on first use, as `#counters` is, because most rows have no limits. */
  readonly #uses: (RateUse | undefined)[] = [];
  readonly #inBitsIndex: number;
  readonly #outBitsIndex: number;
  #counters: Float64Array | undefined;

  constructor(state: LimiterState, { row, workerSlot }: { readonly row: number; readonly workerSlot: number }) {
    state.ensureRow(row);
    this.state = state;
    this.row = row;
    this.workerSlot = workerSlot;
    this.#inBitsIndex = state.limitIndex(row, IN_BITS_PER_SECOND_FIELD);
    this.#outBitsIndex = state.limitIndex(row, OUT_BITS_PER_SECOND_FIELD);
  }

  /**
   * Counts one more open connection and returns true, or returns false if the limit is reached. Adds before it
   * compares, so that workers that race never exceed the limit. Two workers that race for the last connection may both
   * be refused.
   */
  tryOpen(): boolean {
    const { state, row, workerSlot } = this;
    const max = state.limit(row, MAX_OPEN_FIELD);
    state.changeOpen(row, workerSlot, 1);
    // Far from the limit, connections that this worker does not see yet cannot exceed the limit.
    if (state.approximateOpenCount(row) + state.workerSlots * MAX_UNSEEN_OPENS < max) return true;
    state.publishOpen(row, workerSlot);
    if (state.openCount(row) <= max) return true;
    state.changeOpen(row, workerSlot, -1);
    this.#addToCounter(REFUSED_OPEN_COUNTER, 1);
    return false;
  }

  openUnchecked(): void {
    this.state.changeOpen(this.row, this.workerSlot, 1);
  }

  /**
   * The number of connections that all workers have open. Changes by other workers may be missing for a moment, so that the
   * proxy's maximum and fair shares may be exceeded by a few connections.
   */
  get openCount(): number {
    return this.state.approximateOpenCount(this.row);
  }

  /** The maximum number of open connections. Infinity if there is no limit. */
  get maxOpen(): number {
    return this.state.limit(this.row, MAX_OPEN_FIELD);
  }

  /** The mean rate of new connections per second. Infinity if there is no limit. */
  get newConnectionsPerSecond(): number {
    return this.state.limit(this.row, MEAN_NEW_PER_SECOND_FIELD);
  }

  close(): void {
    this.state.changeOpen(this.row, this.workerSlot, -1);
  }

  /**
   * Counts one more unit of a rate and returns true, or returns false if the rate is exceeded. `now` returns
   * nanoseconds and is only called if the rate is limited. `nowMs` is milliseconds of a clock of this worker that never
   * goes back. ClientHellos have the limit of new connections, but are counted separately.
   */
  tryTake(rate: CountRate, now: () => bigint, nowMs: number = performance.now()): boolean {
    const limit = this.#maxInSecond(rate);
    if (limit === Infinity) return true;
    this.#addToCounter(rate, 1);
    const use = this.#uses[rate] ?? this.#createUse(rate);
    if (use.unusedUnits > 0 && nowMs - use.takenAtMs < MAX_BATCH_AGE_MS) {
      use.unusedUnits -= 1;
      return true;
    }
    use.unusedUnits = 0;
    const takenAt = now();
    const mean = this.#meanRate(rate);
    const count = Math.floor(Math.min(limit, mean) * BATCH_SECONDS);
    if (count > 1 && this.#takeFromMemory(rate, use.window, { limit, mean, count, takenAt })) {
      use.unusedUnits = count - 1;
      use.takenAtMs = nowMs;
      return true;
    }
    return this.#takeFromMemory(rate, use.window, { limit, mean, count: 1, takenAt });
  }

  /** Uncounts the unit that the last call of `tryTake` counted. To be called if another limit refuses the unit. */
  giveBack(rate: CountRate): void {
    if (this.#maxInSecond(rate) === Infinity) return;
    const use = this.#uses[rate];
    if (use === undefined) return;
    if (use.unusedUnits > 0) {
      use.unusedUnits += 1;
      return;
    }
    use.window.giveBack();
    const { state, row } = this;
    const field = FIRST_RATE_PAID_UNTIL_FIELD + rate;
    const limit = rateLimitOf(this.#meanRate(rate));
    for (;;) {
      const read = state.paidUntil(row, field);
      const next = chargeToRate(read, -1, { limit, now: 0n });
      if (state.setPaidUntil(row, field, { read, next })) return;
    }
  }

  #createUse(rate: CountRate): RateUse {
    const window = new SecondWindow(this.state.windowCells(this.row, rate));
    const use: RateUse = { window, unusedUnits: 0, takenAtMs: 0 };
    this.#uses[rate] = use;
    return use;
  }

  /** Counts units in the window and takes them from the token bucket, or does neither and returns false. */
  #takeFromMemory(rate: CountRate, window: SecondWindow, { limit, mean, count, takenAt }: UnitsToTake): boolean {
    if (!window.tryTake(limit, takenAt, count)) return false;
    if (this.#takeFromBucket(rate, { mean, count, takenAt })) return true;
    window.giveBack(count);
    return false;
  }

  #takeFromBucket(rate: CountRate, { mean, count, takenAt }: Omit<UnitsToTake, 'limit'>): boolean {
    const { state, row } = this;
    const field = FIRST_RATE_PAID_UNTIL_FIELD + rate;
    const limit = rateLimitOf(mean);
    for (;;) {
      const read = state.paidUntil(row, field);
      const next = takeWithinRate(read, count, { limit, now: takenAt });
      if (next === undefined) return false;
      if (state.setPaidUntil(row, field, { read, next })) return true;
    }
  }

  /** Returns the maximum number of units in any second. */
  #maxInSecond(rate: CountRate): number {
    return this.state.limit(this.row, rate === REQUESTS ? MAX_REQUESTS_PER_SECOND_FIELD : MAX_NEW_PER_SECOND_FIELD);
  }

  /** Returns the mean rate per second. */
  #meanRate(rate: CountRate): number {
    return this.state.limit(this.row, rate === REQUESTS ? MEAN_REQUESTS_PER_SECOND_FIELD : MEAN_NEW_PER_SECOND_FIELD);
  }

  #addToCounter(counter: number, amount: number): void {
    this.#counters ??= this.state.workerCounters(this.row, this.workerSlot);
    this.#counters[counter] = (this.#counters[counter] as number) + amount;
  }

  /** Returns the bandwidth limit of this direction. Infinity if there is no limit. */
  bitsPerSecond(direction: Direction): number {
    return this.state.limitAt(direction === 'out' ? this.#outBitsIndex : this.#inBitsIndex);
  }

  /** Whether the bytes of at least one direction are limited. */
  get limitsBandwidth(): boolean {
    const { state } = this;
    return state.limitAt(this.#inBitsIndex) !== Infinity || state.limitAt(this.#outBitsIndex) !== Infinity;
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

interface UnitsToTake {
  /** The maximum number of units in any second. */
  readonly limit: number;
  /** The mean rate per second. */
  readonly mean: number;
  readonly count: number;
  readonly takenAt: bigint;
}

interface RateUse {
  readonly window: SecondWindow;
  /** The units of the last batch that the worker has not admitted yet. */
  unusedUnits: number;
  /** The `nowMs` of the call of `tryTake` that took the last batch. */
  takenAtMs: number;
}

function rateLimitOf(ratePerSecond: number): RateLimit {
  return { ratePerSecond, burstNs: rateBurstNs(ratePerSecond) };
}

function paidUntilFieldOf(direction: Direction): number {
  return direction === 'out' ? OUT_PAID_UNTIL_FIELD : IN_PAID_UNTIL_FIELD;
}

/**
 * Writes the limits of a row. `limits` are rates for any second; `means` are the mean rates, by default the same. If a
 * bandwidth or a mean rate changes, converts the debt or credit of its token bucket, so that the bucket keeps the same
 * number of bytes or units. Only the main thread calls this function.
 */
export function configureLimiter(
  state: LimiterState,
  row: number,
  { limits, means = limits, now }: { limits: LimiterConfig; means?: MeanRates; now: bigint },
): void {
  state.setLimit(row, MAX_OPEN_FIELD, limits.connections);
  state.setLimit(row, MAX_NEW_PER_SECOND_FIELD, limits.newConnectionsPerSecond);
  state.setLimit(row, MAX_REQUESTS_PER_SECOND_FIELD, limits.requestsPerSecond);
  for (const [limitField, to, firstBucket, buckets] of [
    [IN_BITS_PER_SECOND_FIELD, limits.inBitsPerSecond, IN_PAID_UNTIL_FIELD, 1],
    [OUT_BITS_PER_SECOND_FIELD, limits.outBitsPerSecond, OUT_PAID_UNTIL_FIELD, 1],
    [
      MEAN_NEW_PER_SECOND_FIELD,
      means.newConnectionsPerSecond,
      FIRST_RATE_PAID_UNTIL_FIELD + NEW_CONNECTIONS,
      HELLOS + 1,
    ],
    [MEAN_REQUESTS_PER_SECOND_FIELD, means.requestsPerSecond, FIRST_RATE_PAID_UNTIL_FIELD + REQUESTS, 1],
  ] as const) {
    const from = state.limit(row, limitField);
    if (from === to) continue;
    const burstNs = firstBucket < FIRST_RATE_PAID_UNTIL_FIELD ? BYTES_BURST_NS : rateBurstNs(from);
    for (let bucket = 0; bucket < buckets; bucket += 1)
      rescaleBucket(state, { row, field: firstBucket + bucket }, { from, to, now, burstNs });
    state.setLimit(row, limitField, to);
  }
}

function rescaleBucket(
  state: LimiterState,
  { row, field }: { readonly row: number; readonly field: number },
  change: RateChange,
): void {
  for (;;) {
    const read = state.paidUntil(row, field);
    const next = rescalePaidUntil(read, change);
    if (state.setPaidUntil(row, field, { read, next })) return;
  }
}

/** The limits of one tenant or Service on this proxy. Infinity means no limit. */
export type LimiterConfig = Readonly<Record<LeasedResource, number>>;
export type MeanRates = Readonly<Record<RateResource, number>>;
