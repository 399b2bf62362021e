import { chargeToRate, rescaleDebt, takeWithinRate } from '@weir/model/data-plane';
import {
  type Direction,
  IN_BITS_PER_SECOND_FIELD,
  IN_PAID_UNTIL_FIELD,
  type LimiterState,
  MAX_NEW_PER_SECOND_FIELD,
  MAX_OPEN_FIELD,
  NEW_PAID_UNTIL_FIELD,
  OUT_BITS_PER_SECOND_FIELD,
  OUT_PAID_UNTIL_FIELD,
} from './limiter-state.ts';

export type LimiterRefusal = 'connection-limit' | 'rate-limit';

/** A tenant may open what it may open in one second at once: browsers do. */
const NEW_CONNECTIONS_BURST_NS = 1_000_000_000n;
/** Bytes are saved up for no longer than this, so that nobody is held up by what another did not use before. */
export const BYTES_BURST_NS = 50_000_000n;
const BITS_PER_BYTE = 8;

/**
 * What one tenant or Service may have on this proxy, as one worker sees it. All workers share the row; each adds what it
 * opens to a number of its own, so that what a worker has that dies can be taken back, whatever it was doing.
 */
export class Limiter {
  readonly state: LimiterState;
  readonly row: number;
  readonly workerSlot: number;

  constructor(sheet: LimiterState, { row, column }: { readonly row: number; readonly column: number }) {
    sheet.ensureRow(row);
    this.state = sheet;
    this.row = row;
    this.workerSlot = column;
  }

  /**
   * One more, or no more. It is counted first and looked at then: of several who are too many the last to count sees all
   * the others, so never more than the limit stay; at the brim two may refuse each other.
   */
  tryOpen(): boolean {
    const { state, row, workerSlot } = this;
    state.addOpen(row, workerSlot, 1);
    if (state.openCount(row) <= state.limit(row, MAX_OPEN_FIELD)) return true;
    state.addOpen(row, workerSlot, -1);
    return false;
  }

  /** One more, in any case. */
  openUnchecked(): void {
    this.state.addOpen(this.row, this.workerSlot, 1);
  }

  /** Open now, of all workers. */
  get openCount(): number {
    return this.state.openCount(this.row);
  }

  /** Infinity: no limit. */
  get maxOpen(): number {
    return this.state.limit(this.row, MAX_OPEN_FIELD);
  }

  close(): void {
    this.state.addOpen(this.row, this.workerSlot, -1);
  }

  /** One of so many new ones per second. */
  tryTakeNew(now: () => bigint): boolean {
    const { state, row } = this;
    const ratePerSecond = state.limit(row, MAX_NEW_PER_SECOND_FIELD);
    if (ratePerSecond === Number.POSITIVE_INFINITY) return true;
    const at = { limit: { ratePerSecond, burstNs: NEW_CONNECTIONS_BURST_NS }, now: now() };
    for (;;) {
      const read = state.paidUntil(row, NEW_PAID_UNTIL_FIELD);
      const next = takeWithinRate(read, 1, at);
      if (next === undefined) return false;
      if (state.setPaidUntil(row, NEW_PAID_UNTIL_FIELD, { read, next })) return true;
    }
  }

  /** Infinity: no limit. */
  bitsPerSecond(direction: Direction): number {
    return this.state.limit(this.row, direction === 'out' ? OUT_BITS_PER_SECOND_FIELD : IN_BITS_PER_SECOND_FIELD);
  }

  /** Bytes that have passed; returns until when the rate has them paid for. */
  charge(direction: Direction, bytes: number, now: bigint): bigint {
    const { state, row } = this;
    const bucket = direction === 'out' ? OUT_PAID_UNTIL_FIELD : IN_PAID_UNTIL_FIELD;
    const limit = { ratePerSecond: this.bitsPerSecond(direction), burstNs: BYTES_BURST_NS };
    for (;;) {
      const read = state.paidUntil(row, bucket);
      const next = chargeToRate(read, bytes * BITS_PER_BYTE, { limit, now });
      if (state.setPaidUntil(row, bucket, { read, next })) return next;
    }
  }

  paidUntil(direction: Direction): bigint {
    return this.state.paidUntil(this.row, direction === 'out' ? OUT_PAID_UNTIL_FIELD : IN_PAID_UNTIL_FIELD);
  }
}

const RATE_FIELDS = [
  { limit: MAX_NEW_PER_SECOND_FIELD, bucket: NEW_PAID_UNTIL_FIELD },
  { limit: IN_BITS_PER_SECOND_FIELD, bucket: IN_PAID_UNTIL_FIELD },
  { limit: OUT_BITS_PER_SECOND_FIELD, bucket: OUT_PAID_UNTIL_FIELD },
] as const;

/** Writes what a row may have from now on; what is owed stays owed. For the main thread, or whoever leases shares. */
export function configureLimiter(
  sheet: LimiterState,
  row: number,
  { limits, now }: { limits: LimiterConfig; now: bigint },
): void {
  sheet.setLimit(row, MAX_OPEN_FIELD, limits.connections);
  const wanted = [limits.newConnectionsPerSecond, limits.inBitsPerSecond, limits.outBitsPerSecond];
  for (const [index, { limit, bucket }] of RATE_FIELDS.entries()) {
    const from = sheet.limit(row, limit);
    const to = wanted[index] as number;
    if (from === to) continue;
    for (;;) {
      const read = sheet.paidUntil(row, bucket);
      if (sheet.setPaidUntil(row, bucket, { read, next: rescaleDebt(read, { from, to, now }) })) break;
    }
    sheet.setLimit(row, limit, to);
  }
}

/** On this proxy; Infinity: no limit. */
export interface LimiterConfig {
  readonly connections: number;
  readonly newConnectionsPerSecond: number;
  readonly inBitsPerSecond: number;
  readonly outBitsPerSecond: number;
}
