// Rates of a tenant from the ledger. The ledger adds usage to the minute in which clients caused it, so reading only the last two minutes
// leaves out usage that a proxy reports after an outage.
import type { Heartbeat } from '../heartbeat.ts';
import { addCounters, COUNTER_NAMES, type Counters, counterIncrease, ZERO_COUNTERS } from '../usage/report.ts';
import type { RuleMetric } from './rule.ts';

/** What the ledger holds about one tenant at one time. */
export interface LedgerReading {
  /** Milliseconds of the monotonic clock. */
  readonly at: number;
  /** The usage of the tenant in the current minute and the minute before, by whole minutes since the epoch. */
  readonly minutes: ReadonlyMap<number, Counters>;
  /** The incarnations that serve the tenant: the result of `reportingProxies`, so all of them have reported their usage. */
  readonly proxies: ReadonlySet<string>;
}

/** The consecutive readings of the last seconds. */
export interface RateWindow {
  readonly last: LedgerReading;
  /** The usage since the start of the window, at most `MAX_POINTS` points, ascending. */
  readonly points: readonly { readonly at: number; readonly usage: Counters }[];
}

/** A rate is the mean over up to three intervals between readings, because reports of the proxies arrive up to a second late. */
const MAX_POINTS = 4;
/** Readings that are farther apart are not consecutive, because the usage of a minute in between may not have been read. */
const MAX_READING_GAP_MS = 20_000;

/** Adds a reading to a window. Returns undefined without a reading, and a new window if the readings are not consecutive. */
export function nextRateWindow(
  window: RateWindow | undefined,
  reading: LedgerReading | undefined,
): RateWindow | undefined {
  if (reading === undefined) return undefined;
  const increase = window && increaseBetween(window.last, reading);
  if (window === undefined || increase === undefined)
    return { last: reading, points: [{ at: reading.at, usage: ZERO_COUNTERS }] };
  const before = window.points.at(-1)?.usage ?? ZERO_COUNTERS;
  const points = [...window.points, { at: reading.at, usage: addCounters(before, increase) }];
  return { last: reading, points: points.slice(-MAX_POINTS) };
}

/** Returns the usage between two readings; undefined if the readings are not consecutive. */
function increaseBetween(before: LedgerReading, after: LedgerReading): Counters | undefined {
  const elapsed = after.at - before.at;
  if (elapsed <= 0 || elapsed > MAX_READING_GAP_MS) return undefined;
  // A proxy that joins may report usage of an earlier time.
  for (const proxy of after.proxies) if (!before.proxies.has(proxy)) return undefined;
  const lastMinute = Math.max(...before.minutes.keys());
  let total = ZERO_COUNTERS;
  for (const [minute, counters] of after.minutes) {
    const earlier = before.minutes.get(minute);
    if (earlier === undefined && minute <= lastMinute) return undefined;
    // The ledger has lost usage, and the proxies report the usage again.
    if (earlier !== undefined && COUNTER_NAMES.some((name) => counters[name] < earlier[name])) return undefined;
    total = addCounters(total, counterIncrease(earlier ?? ZERO_COUNTERS, counters));
  }
  return total;
}

/** Returns the mean of a rate over the window, in the unit of the metric; undefined if the window has less than two readings. */
export function rateIn(
  window: RateWindow | undefined,
  metric: Exclude<RuleMetric, 'trafficPerMonth'>,
): number | undefined {
  const first = window?.points[0];
  const last = window?.points.at(-1);
  if (first === undefined || last === undefined || last.at <= first.at) return undefined;
  const seconds = (last.at - first.at) / 1000;
  return amountOf(counterIncrease(first.usage, last.usage), metric) / seconds;
}

function amountOf(usage: Counters, metric: Exclude<RuleMetric, 'trafficPerMonth'>): number {
  switch (metric) {
    case 'inBitsPerSecond':
      return usage.receivedBytes * 8;
    case 'outBitsPerSecond':
      return usage.sentBytes * 8;
    case 'newConnectionsPerSecond':
      return usage.connections;
    case 'requestsPerSecond':
      return usage.requests;
  }
}

/** Proxies report usage and send heartbeats once a second. A heartbeat may miss two reports, and may itself be one interval old. */
const MAX_REPORT_AGE_MS = 3_000;

/**
 * Returns the incarnations on the given nodes, as `node/life`; undefined if the ledger lacks usage of any of them. A node without a
 * heartbeat has no live proxy.
 */
export function reportingProxies(
  heartbeats: readonly Heartbeat[],
  nodes: ReadonlySet<string>,
): ReadonlySet<string> | undefined {
  const serving = heartbeats.filter(({ node }) => nodes.has(node));
  const isCurrent = ({ sentAt, usageReportedAt }: Heartbeat): boolean =>
    sentAt !== undefined && usageReportedAt !== undefined && sentAt - usageReportedAt <= MAX_REPORT_AGE_MS;
  if (!serving.every(isCurrent)) return undefined;
  return new Set(serving.map(({ node, life }) => `${node}/${life}`));
}
