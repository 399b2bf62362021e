import {
  addCounters,
  type Counters,
  counterIncrease,
  hasIncrease,
  mapCounts,
  maxCounters,
  type RefusalCounts,
  type UsagePeriod,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model';

/** The rows of the ledger at one time. */
export interface UsageSample {
  /** Time of the sample, in milliseconds since the epoch. */
  readonly at: number;
  readonly month: UsagePeriod;
  /** Counters since the start of the month. */
  readonly rows: readonly UsageRow[];
}

/** The increase of the counters between two samples. Only tenants and Services with traffic have an entry. */
export interface RateFrame {
  /** Time of the second sample, in milliseconds since the epoch. */
  readonly at: number;
  readonly spanMs: number;
  readonly tenants: ReadonlyMap<string, Counters>;
  /** The increase by Service UID. */
  readonly services: ReadonlyMap<string, Counters>;
}

export interface RateHistory {
  readonly last: {
    readonly at: number;
    readonly month: UsagePeriod;
    /** The highest counters of `month` so far, by `SERVICE UID/TENANT`. */
    readonly totals: ReadonlyMap<string, Counters>;
  } | null;
  /** Ascending by time, at most `MAX_RATE_FRAMES`. */
  readonly frames: readonly RateFrame[];
}

export const EMPTY_RATE_HISTORY: RateHistory = { last: null, frames: [] };
/** Maximum number of frames in a `RateHistory`: five minutes with one sample per second. */
export const MAX_RATE_FRAMES = 300;
/** Longest time between two samples that make a frame. A mean over a longer time would not be a current rate. */
const MAX_SAMPLE_GAP_MS = 5_000;

/** Returns the history with one more sample. */
export function addSample(history: RateHistory, sample: UsageSample): RateHistory {
  const { last } = history;
  const isSameMonth = last !== null && last.month === sample.month;
  const previousTotals = isSameMonth ? last.totals : new Map<string, Counters>();
  // Keeps totals that the sample lacks. If the ledger is wiped and restored, the restored totals must not look like new traffic.
  const totals = new Map(previousTotals);
  const tenants = new Map<string, Counters>();
  const services = new Map<string, Counters>();
  for (const row of sample.rows) {
    const key = `${row.service}/${row.tenant}`;
    const previous = previousTotals.get(key) ?? ZERO_COUNTERS;
    totals.set(key, maxCounters(previous, row.counters));
    const increase = counterIncrease(previous, row.counters);
    if (!hasIncrease(ZERO_COUNTERS, increase)) continue;
    tenants.set(row.tenant, addCounters(tenants.get(row.tenant) ?? ZERO_COUNTERS, increase));
    services.set(row.service, addCounters(services.get(row.service) ?? ZERO_COUNTERS, increase));
  }
  const next = { at: sample.at, month: sample.month, totals };
  const spanMs = last === null ? 0 : sample.at - last.at;
  if (last === null || spanMs <= 0 || spanMs > MAX_SAMPLE_GAP_MS)
    return { last: next, frames: recentFrames(history, sample.at) };
  const frame: RateFrame = { at: sample.at, spanMs, tenants, services };
  return { last: next, frames: [...recentFrames(history, sample.at), frame].slice(-MAX_RATE_FRAMES) };
}

/** Returns the frames of the last five minutes. Drops frames that are later than `now`, which exist if the wall clock was set back. */
function recentFrames(history: RateHistory, now: number): readonly RateFrame[] {
  return history.frames.filter((frame) => frame.at < now && frame.at > now - MAX_RATE_FRAMES * 1_000);
}

/** Rates of a tenant or a Service. "In" is what clients send and "out" is what clients receive, as in the limits of a TenantPolicy. */
export interface Rate {
  readonly inBitsPerSecond: number;
  readonly outBitsPerSecond: number;
  readonly newConnectionsPerSecond: number;
  readonly requestsPerSecond: number;
  /** The requests that were answered with a status of the class 5xx. */
  readonly serverErrorsPerSecond: number;
  /** Refused connections, UDP flows and requests by reason. Absent if nothing was refused. */
  readonly refusedPerSecond?: RefusalCounts;
}

export interface RatePoint extends Rate {
  /** End of the time span of the rates, in milliseconds since the epoch. */
  readonly at: number;
}

export interface CurrentRates {
  readonly at: number;
  readonly tenants: ReadonlyMap<string, Rate>;
  /** The rates by Service UID. */
  readonly services: ReadonlyMap<string, Rate>;
}

export const ZERO_RATE: Rate = {
  inBitsPerSecond: 0,
  outBitsPerSecond: 0,
  newConnectionsPerSecond: 0,
  requestsPerSecond: 0,
  serverErrorsPerSecond: 0,
};

/**
 * Time over which current rates are averaged. Proxies flush once a second and the console samples once a second, so one sample may include
 * two flushes and the next sample none. A mean over three seconds evens out the difference.
 */
const RATE_WINDOW_MS = 3_000;

/** Returns the mean rates over the last three seconds, or undefined if the last two samples are too far apart or missing. */
export function currentRatesFor(history: RateHistory): CurrentRates | undefined {
  const newest = history.frames.at(-1);
  if (newest === undefined || history.last === null || newest.at !== history.last.at) return undefined;
  const frames = history.frames.filter(
    (frame) => frame.at - frame.spanMs >= newest.at - RATE_WINDOW_MS - newest.spanMs / 2,
  );
  const recent = frames.length > 0 ? frames : [newest];
  return {
    at: newest.at,
    tenants: meanRates(recent, (frame) => frame.tenants),
    services: meanRates(recent, (frame) => frame.services),
  };
}

/** Returns one point per frame with the rates of a tenant or Service, ascending by time. `id` is the tenant's name or the Service's UID. */
export function ratePointsFor(
  history: RateHistory,
  subject: { readonly kind: 'tenant' | 'service'; readonly id: string },
): RatePoint[] {
  return history.frames.map((frame) => {
    const increase = (subject.kind === 'tenant' ? frame.tenants : frame.services).get(subject.id) ?? ZERO_COUNTERS;
    return { at: frame.at, ...rateFor(increase, frame.spanMs) };
  });
}

function meanRates(
  frames: readonly RateFrame[],
  countersOf: (frame: RateFrame) => ReadonlyMap<string, Counters>,
): ReadonlyMap<string, Rate> {
  const sums = new Map<string, Counters>();
  let spanMs = 0;
  for (const frame of frames) {
    spanMs += frame.spanMs;
    for (const [key, increase] of countersOf(frame)) {
      sums.set(key, addCounters(sums.get(key) ?? ZERO_COUNTERS, increase));
    }
  }
  return new Map([...sums].map(([key, sum]) => [key, rateFor(sum, spanMs)]));
}

function rateFor(increase: Counters, spanMs: number): Rate {
  const perSecond = (amount: number): number => Math.round((amount * 1_000 * 10) / spanMs) / 10;
  return {
    inBitsPerSecond: Math.round(perSecond(increase.receivedBytes * 8)),
    outBitsPerSecond: Math.round(perSecond(increase.sentBytes * 8)),
    newConnectionsPerSecond: perSecond(increase.connections),
    requestsPerSecond: perSecond(increase.requests),
    serverErrorsPerSecond: perSecond(increase.requestsByCodeClass?.['5xx'] ?? 0),
    ...(increase.refused && { refusedPerSecond: mapCounts(increase.refused, perSecond) }),
  };
}
