import {
  addCounters,
  type Counters,
  counterIncrease,
  maxCounters,
  type UsagePeriod,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model';

// What passed in each of the last seconds, out of samples of the ledger. Sparse: a frame holds only who moved something.
export interface UsageSample {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly month: UsagePeriod;
  /** Cumulative over the month. */
  readonly rows: readonly UsageRow[];
}

export interface RateFrame {
  readonly at: number;
  readonly spanMs: number;
  readonly tenants: ReadonlyMap<string, Counters>;
  /** By Service UID. */
  readonly services: ReadonlyMap<string, Counters>;
}

export interface RateHistory {
  readonly last: {
    readonly at: number;
    readonly month: UsagePeriod;
    readonly seen: ReadonlyMap<string, Counters>;
  } | null;
  /** Ascending by time, at most `FRAMES_KEPT`. */
  readonly frames: readonly RateFrame[];
}

export const EMPTY_RATE_HISTORY: RateHistory = { last: null, frames: [] };
/** Five minutes of one sample a second. */
export const MAX_RATE_FRAMES = 300;
/** Nobody looked for so long that one figure over the gap would say nothing about now. */
const MAX_SAMPLE_GAP_MS = 5_000;

/** The history with one sample more. */
export function addSample(history: RateHistory, sample: UsageSample): RateHistory {
  const { last } = history;
  const sameMonth = last !== null && last.month === sample.month;
  const before = sameMonth ? last.seen : new Map<string, Counters>();
  // What a wiped ledger lacks for a moment is remembered, so that its restored total does not look like traffic.
  const seen = new Map(before);
  const tenants = new Map<string, Counters>();
  const services = new Map<string, Counters>();
  for (const row of sample.rows) {
    const key = `${row.service}/${row.tenant}`;
    const earlier = before.get(key) ?? ZERO_COUNTERS;
    seen.set(key, maxCounters(earlier, row.counters));
    const moved = counterIncrease(earlier, row.counters);
    if (isZero(moved)) continue;
    tenants.set(row.tenant, addCounters(tenants.get(row.tenant) ?? ZERO_COUNTERS, moved));
    services.set(row.service, addCounters(services.get(row.service) ?? ZERO_COUNTERS, moved));
  }
  const next = { at: sample.at, month: sample.month, seen };
  const spanMs = last === null ? 0 : sample.at - last.at;
  if (last === null || spanMs <= 0 || spanMs > MAX_SAMPLE_GAP_MS)
    return { last: next, frames: recentFrames(history, sample.at) };
  const frame: RateFrame = { at: sample.at, spanMs, tenants, services };
  return { last: next, frames: [...recentFrames(history, sample.at), frame].slice(-MAX_RATE_FRAMES) };
}

/** Frames that are not older than what is kept; a wall clock that jumped back drops those of the future. */
function recentFrames(history: RateHistory, now: number): readonly RateFrame[] {
  return history.frames.filter((frame) => frame.at < now && frame.at > now - MAX_RATE_FRAMES * 1_000);
}

function isZero(counters: Counters): boolean {
  return (
    counters.receivedBytes === 0 && counters.sentBytes === 0 && counters.connections === 0 && counters.requests === 0
  );
}

/** Named as the limits of a TenantPolicy are: in = what clients sent, out = what clients got. */
export interface Rate {
  readonly inBitsPerSecond: number;
  readonly outBitsPerSecond: number;
  readonly newConnectionsPerSecond: number;
  readonly requestsPerSecond: number;
}

export interface RatePoint extends Rate {
  /** Milliseconds since the epoch: the end of the span. */
  readonly at: number;
}

export interface CurrentRates {
  readonly at: number;
  readonly tenants: ReadonlyMap<string, Rate>;
  /** By Service UID. */
  readonly services: ReadonlyMap<string, Rate>;
}

export const ZERO_RATE: Rate = {
  inBitsPerSecond: 0,
  outBitsPerSecond: 0,
  newConnectionsPerSecond: 0,
  requestsPerSecond: 0,
};

/**
 * Proxies flush once a second and samples are taken once a second: one sample may see two flushes, the next none. Over
 * three the figure is steady and still of now.
 */
const RATE_WINDOW_MS = 3_000;

/** Rates over the last three seconds; undefined while there are not yet two samples that belong together. */
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

/** One point per frame of one tenant or one Service (by UID), ascending. */
export function ratePointsFor(
  history: RateHistory,
  of: { readonly kind: 'tenant' | 'service'; readonly id: string },
): RatePoint[] {
  return history.frames.map((frame) => {
    const moved = (of.kind === 'tenant' ? frame.tenants : frame.services).get(of.id) ?? ZERO_COUNTERS;
    return { at: frame.at, ...rateFor(moved, frame.spanMs) };
  });
}

function meanRates(
  frames: readonly RateFrame[],
  part: (frame: RateFrame) => ReadonlyMap<string, Counters>,
): ReadonlyMap<string, Rate> {
  const sums = new Map<string, Counters>();
  let spanMs = 0;
  for (const frame of frames) {
    spanMs += frame.spanMs;
    for (const [key, moved] of part(frame)) sums.set(key, addCounters(sums.get(key) ?? ZERO_COUNTERS, moved));
  }
  return new Map([...sums].map(([key, sum]) => [key, rateFor(sum, spanMs)]));
}

function rateFor(moved: Counters, spanMs: number): Rate {
  const perSecond = (amount: number): number => Math.round((amount * 1_000 * 10) / spanMs) / 10;
  return {
    inBitsPerSecond: Math.round(perSecond(moved.receivedBytes * 8)),
    outBitsPerSecond: Math.round(perSecond(moved.sentBytes * 8)),
    newConnectionsPerSecond: perSecond(moved.connections),
    requestsPerSecond: perSecond(moved.requests),
  };
}
