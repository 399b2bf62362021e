import { changePace, chargeAtPace, takeAtPace } from '@weir/model/data-plane';
import {
  type Direction,
  IN_BITS_PER_SECOND,
  IN_PAID_UNTIL,
  type LimitSheet,
  MOST_NEW_PER_SECOND,
  MOST_OPEN,
  NEW_PAID_UNTIL,
  OUT_BITS_PER_SECOND,
  OUT_PAID_UNTIL,
} from './limit-sheet.ts';

export type BudgetRefusal = 'connection-limit' | 'rate-limit';

/** A tenant may open what it may open in one second at once: browsers do. */
const NEW_BURST_NS = 1_000_000_000n;
/** Bytes are saved up for no longer than this, so that nobody is held up by what another did not use before. */
export const BYTES_BURST_NS = 50_000_000n;
const BITS_PER_BYTE = 8;

/**
 * What one tenant or Service may have on this proxy, as one worker sees it. All workers share the row; each adds what it
 * opens to a number of its own, so that what a worker has that dies can be taken back, whatever it was doing.
 */
export class Budget {
  readonly sheet: LimitSheet;
  readonly row: number;
  readonly column: number;

  constructor(sheet: LimitSheet, { row, column }: { readonly row: number; readonly column: number }) {
    sheet.reach(row);
    this.sheet = sheet;
    this.row = row;
    this.column = column;
  }

  /**
   * One more, or no more. It is counted first and looked at then: of several who are too many the last to count sees all
   * the others, so never more than the limit stay; at the brim two may refuse each other.
   */
  open(): boolean {
    const { sheet, row, column } = this;
    sheet.addOpen(row, column, 1);
    if (sheet.open(row) <= sheet.limit(row, MOST_OPEN)) return true;
    sheet.addOpen(row, column, -1);
    return false;
  }

  /** One more, in any case. */
  count(): void {
    this.sheet.addOpen(this.row, this.column, 1);
  }

  /** Open now, of all workers. */
  get opened(): number {
    return this.sheet.open(this.row);
  }

  /** Infinity: no limit. */
  get mostOpen(): number {
    return this.sheet.limit(this.row, MOST_OPEN);
  }

  close(): void {
    this.sheet.addOpen(this.row, this.column, -1);
  }

  /** One of so many new ones per second. */
  takeNew(now: () => bigint): boolean {
    const { sheet, row } = this;
    const ratePerSecond = sheet.limit(row, MOST_NEW_PER_SECOND);
    if (ratePerSecond === Number.POSITIVE_INFINITY) return true;
    const at = { pace: { ratePerSecond, burstNs: NEW_BURST_NS }, now: now() };
    for (;;) {
      const read = sheet.paidUntil(row, NEW_PAID_UNTIL);
      const next = takeAtPace(read, 1, at);
      if (next === undefined) return false;
      if (sheet.setPaidUntil(row, NEW_PAID_UNTIL, { read, next })) return true;
    }
  }

  /** Infinity: no limit. */
  bitsPerSecond(direction: Direction): number {
    return this.sheet.limit(this.row, direction === 'out' ? OUT_BITS_PER_SECOND : IN_BITS_PER_SECOND);
  }

  /** Bytes that have passed; returns until when the rate has them paid for. */
  charge(direction: Direction, bytes: number, now: bigint): bigint {
    const { sheet, row } = this;
    const bucket = direction === 'out' ? OUT_PAID_UNTIL : IN_PAID_UNTIL;
    const pace = { ratePerSecond: this.bitsPerSecond(direction), burstNs: BYTES_BURST_NS };
    for (;;) {
      const read = sheet.paidUntil(row, bucket);
      const next = chargeAtPace(read, bytes * BITS_PER_BYTE, { pace, now });
      if (sheet.setPaidUntil(row, bucket, { read, next })) return next;
    }
  }

  paidUntil(direction: Direction): bigint {
    return this.sheet.paidUntil(this.row, direction === 'out' ? OUT_PAID_UNTIL : IN_PAID_UNTIL);
  }
}

const RATES = [
  { limit: MOST_NEW_PER_SECOND, bucket: NEW_PAID_UNTIL },
  { limit: IN_BITS_PER_SECOND, bucket: IN_PAID_UNTIL },
  { limit: OUT_BITS_PER_SECOND, bucket: OUT_PAID_UNTIL },
] as const;

/** Writes what a row may have from now on; what is owed stays owed. For the main thread, or whoever leases shares. */
export function setBudget(
  sheet: LimitSheet,
  row: number,
  { limits, now }: { limits: BudgetLimits; now: bigint },
): void {
  sheet.setLimit(row, MOST_OPEN, limits.connections);
  const wanted = [limits.newConnectionsPerSecond, limits.inBitsPerSecond, limits.outBitsPerSecond];
  for (const [index, { limit, bucket }] of RATES.entries()) {
    const from = sheet.limit(row, limit);
    const to = wanted[index] as number;
    if (from === to) continue;
    for (;;) {
      const read = sheet.paidUntil(row, bucket);
      if (sheet.setPaidUntil(row, bucket, { read, next: changePace(read, { from, to, now }) })) break;
    }
    sheet.setLimit(row, limit, to);
  }
}

/** On this proxy; Infinity: no limit. */
export interface BudgetLimits {
  readonly connections: number;
  readonly newConnectionsPerSecond: number;
  readonly inBitsPerSecond: number;
  readonly outBitsPerSecond: number;
}
