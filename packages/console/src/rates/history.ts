// What passed in each of the last seconds, out of samples of the ledger. Sparse: a frame holds only who moved something.
import {
  addCounters,
  type Counters,
  counterIncrease,
  maxCounters,
  type UsagePeriod,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model';

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
