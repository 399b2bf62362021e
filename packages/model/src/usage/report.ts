/** What one life of a proxy flushes to the ledger: cumulative values, so that repeating or losing a report is harmless. */
export interface UsageReport {
  readonly node: string;
  readonly life: number;
  readonly slots: readonly SlotReport[];
}

/** One (Service, tenant) pair. A Service that changes its tenant gets a new slot. */
export interface SlotReport {
  /** UID of the Service. */
  readonly service: string;
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  /** By minute, ascending. The last one is the present value. */
  readonly points: readonly UsagePoint[];
}

/** The slot's cumulative value at the end of what was counted in a minute. */
export interface UsagePoint {
  /** Whole minutes since the epoch, UTC. */
  readonly minute: number;
  readonly counters: Counters;
}

/** `YYYY-MM`, `YYYY-MM-DD`, `YYYY-MM-DDTHH` or `YYYY-MM-DDTHH:MM`, UTC. */
export type UsagePeriod = string;

/** What a (Service, tenant) pair used in one period. */
export interface UsageRow {
  readonly service: string;
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  readonly counters: Counters;
}

/** Bytes as the client sees them: received = what it sent, sent = what it got. Exact to 2^53. */
export interface Counters {
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly connections: number;
  readonly requests: number;
}

export const COUNTER_NAMES = ['receivedBytes', 'sentBytes', 'connections', 'requests'] as const;
export type CounterName = (typeof COUNTER_NAMES)[number];
export const ZERO_COUNTERS: Counters = { receivedBytes: 0, sentBytes: 0, connections: 0, requests: 0 };

export function addCounters(a: Counters, b: Counters): Counters {
  return combineCounters(a, b, (x, y) => x + y);
}

/** What `later` has beyond `earlier`; never negative: a smaller value is an old report. */
export function counterIncrease(earlier: Counters, later: Counters): Counters {
  return combineCounters(earlier, later, (x, y) => Math.max(0, y - x));
}

/** The larger of each: the newest of cumulative values, in whatever order they come. */
export function maxCounters(a: Counters, b: Counters): Counters {
  return combineCounters(a, b, Math.max);
}

function combineCounters(a: Counters, b: Counters, with_: (x: number, y: number) => number): Counters {
  return {
    receivedBytes: with_(a.receivedBytes, b.receivedBytes),
    sentBytes: with_(a.sentBytes, b.sentBytes),
    connections: with_(a.connections, b.connections),
    requests: with_(a.requests, b.requests),
  };
}
