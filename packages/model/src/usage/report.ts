/**
 * The usage that one proxy process reports to the ledger. Values are cumulative since the process started, so repeating or losing a report
 * is harmless. `life` counts the starts of the proxy on its node.
 */
export interface UsageReport {
  readonly node: string;
  readonly life: number;
  readonly slots: readonly SlotReport[];
  /**
   * Whether the report has the current values of all slots of the incarnation, and the proxy has also reported the usage of its past
   * incarnations. A store that lost usage then has all of the proxy's usage again.
   */
  readonly isFull?: boolean;
}

/** The usage of one (Service, tenant) pair. A Service that changes its tenant gets a new slot. */
export interface SlotReport {
  /** UID of the Service. */
  readonly service: string;
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  /** In ascending order of minutes; the last point holds the current values. */
  readonly points: readonly UsagePoint[];
}

/** The slot's cumulative counters at the end of one minute. */
export interface UsagePoint {
  /** Whole minutes since the epoch, UTC. */
  readonly minute: number;
  readonly counters: Counters;
}

/** A period in UTC: `YYYY-MM`, `YYYY-MM-DD`, `YYYY-MM-DDTHH` or `YYYY-MM-DDTHH:MM`. */
export type UsagePeriod = string;

/** The usage of a (Service, tenant) pair in one period. */
export interface UsageRow {
  readonly service: string;
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  readonly counters: Counters;
}

/** The usage counters of one Service, exact up to 2^53. Received bytes come from clients, sent bytes go to clients. */
export interface Counters {
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly connections: number;
  readonly requests: number;
}

export const COUNTER_NAMES = ['receivedBytes', 'sentBytes', 'connections', 'requests'] as const;
export type CounterName = (typeof COUNTER_NAMES)[number];
export const ZERO_COUNTERS: Counters = { receivedBytes: 0, sentBytes: 0, connections: 0, requests: 0 };

/** Returns the sum of each counter. */
export function addCounters(a: Counters, b: Counters): Counters {
  return combineCounters(a, b, (x, y) => x + y);
}

/**
 * Returns the increase of each counter from `earlier` to `later`. Returns 0 for a counter that is smaller in `later`, because `later` is
 * then from an older report.
 */
export function counterIncrease(earlier: Counters, later: Counters): Counters {
  return combineCounters(earlier, later, (x, y) => Math.max(0, y - x));
}

/** Returns the larger value of each counter. This is the newest cumulative value, whatever the order of the reports. */
export function maxCounters(a: Counters, b: Counters): Counters {
  return combineCounters(a, b, Math.max);
}

function combineCounters(a: Counters, b: Counters, combine: (x: number, y: number) => number): Counters {
  return {
    receivedBytes: combine(a.receivedBytes, b.receivedBytes),
    sentBytes: combine(a.sentBytes, b.sentBytes),
    connections: combine(a.connections, b.connections),
    requests: combine(a.requests, b.requests),
  };
}
