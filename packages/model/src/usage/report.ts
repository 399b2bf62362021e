/**
 * The usage that one proxy process reports to the ledger. Values are cumulative since the process started, so repeating or losing a report
 * is harmless. `life` is the number of the incarnation, as in `Heartbeat`.
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
  /** All requests, including the requests that a version without code classes counted. */
  readonly requests: number;
  /** Absent if no request was counted by code class. */
  readonly requestsByCodeClass?: RequestsByCodeClass;
  /**
   * The connections, UDP flows and requests that were refused, by reason. The reasons are the values of the label `reason` of
   * `weir_service_refused_total`. Absent if nothing was refused; a reason that did not occur is absent.
   */
  readonly refused?: RefusalCounts;
}

/** Positive counts by reason. Proxies of a newer version may report reasons that this version does not know. */
export type RefusalCounts = Readonly<Record<string, number>>;

/**
 * The classes of the status codes that clients received. A 101 counts as `2xx`, because the request was granted; other
 * interim responses do not count. `none`: the request ended without an answer to the client.
 */
export const CODE_CLASSES = ['2xx', '3xx', '4xx', '5xx', 'none'] as const;
export type CodeClass = (typeof CODE_CLASSES)[number];
export type RequestsByCodeClass = Readonly<Record<CodeClass, number>>;

/** The counters that are always present. */
export const COUNTER_NAMES = ['receivedBytes', 'sentBytes', 'connections', 'requests'] as const;
export type CounterName = (typeof COUNTER_NAMES)[number];
export const ZERO_COUNTERS: Counters = { receivedBytes: 0, sentBytes: 0, connections: 0, requests: 0 };
const ZERO_CLASSES: RequestsByCodeClass = { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0, none: 0 };

/** Returns the counters in the order of `COUNTER_NAMES` and `CODE_CLASSES`, without `refused`. The classes are 0 if they are absent. */
export function counterValues(counters: Counters): number[] {
  const { requestsByCodeClass: classes = ZERO_CLASSES } = counters;
  return [...COUNTER_NAMES.map((name) => counters[name]), ...CODE_CLASSES.map((codeClass) => classes[codeClass])];
}

/** Returns the counters of a list as `counterValues` returns it, and the given refusals. Missing values are 0. */
export function countersFrom(values: readonly number[], refused?: RefusalCounts): Counters {
  const at = (index: number): number => values[index] ?? 0;
  return countersWith(
    { receivedBytes: at(0), sentBytes: at(1), connections: at(2), requests: at(3) },
    { '2xx': at(4), '3xx': at(5), '4xx': at(6), '5xx': at(7), none: at(8) },
    refused,
  );
}

/** Returns the counters with the classes and refusals. Leaves out the classes if all of them are 0. */
function countersWith(counters: Counters, classes: RequestsByCodeClass, refused: RefusalCounts | undefined): Counters {
  const isCounted =
    classes['2xx'] !== 0 || classes['3xx'] !== 0 || classes['4xx'] !== 0 || classes['5xx'] !== 0 || classes.none !== 0;
  if (!isCounted && refused === undefined) return counters;
  const { receivedBytes, sentBytes, connections, requests } = counters;
  return {
    receivedBytes,
    sentBytes,
    connections,
    requests,
    ...(isCounted && { requestsByCodeClass: classes }),
    ...(refused && { refused }),
  };
}

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

/** Whether any counter is larger in `later` than in `earlier`. */
export function hasIncrease(earlier: Counters, later: Counters): boolean {
  const isLarger =
    later.receivedBytes > earlier.receivedBytes ||
    later.sentBytes > earlier.sentBytes ||
    later.connections > earlier.connections ||
    later.requests > earlier.requests;
  if (isLarger || hasClassIncrease(earlier.requestsByCodeClass, later.requestsByCodeClass)) return true;
  const { refused } = later;
  if (refused === undefined) return false;
  return Object.keys(refused).some((reason) => countOf(refused, reason) > countOf(earlier.refused, reason));
}

/** Returns how often clients were refused for one of the given reasons, or for any reason. */
export function refusalCount({ refused = {} }: Counters, reasons: readonly string[] = Object.keys(refused)): number {
  return reasons.reduce((sum, reason) => sum + countOf(refused, reason), 0);
}

/** Returns the counts by reason, each changed by `change`. */
export function mapCounts(refused: RefusalCounts, change: (count: number) => number): RefusalCounts {
  return Object.fromEntries(Object.entries(refused).map(([reason, count]) => [reason, change(count)]));
}

function hasClassIncrease(
  earlier: RequestsByCodeClass = ZERO_CLASSES,
  later: RequestsByCodeClass = ZERO_CLASSES,
): boolean {
  return (
    later['2xx'] > earlier['2xx'] ||
    later['3xx'] > earlier['3xx'] ||
    later['4xx'] > earlier['4xx'] ||
    later['5xx'] > earlier['5xx'] ||
    later.none > earlier.none
  );
}

function combineCounters(a: Counters, b: Counters, combine: (x: number, y: number) => number): Counters {
  const { requestsByCodeClass: x = ZERO_CLASSES } = a;
  const { requestsByCodeClass: y = ZERO_CLASSES } = b;
  return countersWith(
    {
      receivedBytes: combine(a.receivedBytes, b.receivedBytes),
      sentBytes: combine(a.sentBytes, b.sentBytes),
      connections: combine(a.connections, b.connections),
      requests: combine(a.requests, b.requests),
    },
    {
      '2xx': combine(x['2xx'], y['2xx']),
      '3xx': combine(x['3xx'], y['3xx']),
      '4xx': combine(x['4xx'], y['4xx']),
      '5xx': combine(x['5xx'], y['5xx']),
      none: combine(x.none, y.none),
    },
    combineRefusals(a.refused, b.refused, combine),
  );
}

function combineRefusals(
  a: RefusalCounts | undefined,
  b: RefusalCounts | undefined,
  combine: (x: number, y: number) => number,
): RefusalCounts | undefined {
  if (a === undefined && b === undefined) return undefined;
  const reasons = Object.keys({ ...a, ...b });
  const counts = reasons.map((reason) => [reason, combine(countOf(a, reason), countOf(b, reason))] as const);
  const positive = counts.filter(([, count]) => count > 0);
  return positive.length === 0 ? undefined : Object.fromEntries(positive);
}

/** Reads only own properties, because a reason may have the name of a property that every object inherits. */
function countOf(refused: RefusalCounts | undefined, reason: string): number {
  return refused !== undefined && Object.hasOwn(refused, reason) ? (refused[reason] ?? 0) : 0;
}
