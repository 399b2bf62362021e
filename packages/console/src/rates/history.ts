// What passed in each of the last seconds, out of samples of the ledger. Sparse: a frame holds only who moved something.
import { add, type Counters, growth, newest, type Period, type UsageRow, ZERO } from '@weir/model';

export interface Sample {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly month: Period;
  /** Cumulative over the month. */
  readonly rows: readonly UsageRow[];
}

export interface Frame {
  readonly at: number;
  readonly spanMs: number;
  readonly tenants: ReadonlyMap<string, Counters>;
  /** By Service UID. */
  readonly services: ReadonlyMap<string, Counters>;
}

export interface RateHistory {
  readonly last: { readonly at: number; readonly month: Period; readonly seen: ReadonlyMap<string, Counters> } | null;
  /** Ascending by time, at most `FRAMES_KEPT`. */
  readonly frames: readonly Frame[];
}

export const NO_HISTORY: RateHistory = { last: null, frames: [] };

/** Five minutes of one sample a second. */
export const FRAMES_KEPT = 300;

/** Nobody looked for so long that one figure over the gap would say nothing about now. */
const LONGEST_SPAN_MS = 5_000;

/** The history with one sample more. */
export function addSample(history: RateHistory, sample: Sample): RateHistory {
  const { last } = history;
  const sameMonth = last !== null && last.month === sample.month;
  const before = sameMonth ? last.seen : new Map<string, Counters>();
  // What a wiped ledger lacks for a moment is remembered, so that its restored total does not look like traffic.
  const seen = new Map(before);
  const tenants = new Map<string, Counters>();
  const services = new Map<string, Counters>();
  for (const row of sample.rows) {
    const key = `${row.service}/${row.tenant}`;
    const earlier = before.get(key) ?? ZERO;
    seen.set(key, newest(earlier, row.counters));
    const moved = growth(earlier, row.counters);
    if (isZero(moved)) continue;
    tenants.set(row.tenant, add(tenants.get(row.tenant) ?? ZERO, moved));
    services.set(row.service, add(services.get(row.service) ?? ZERO, moved));
  }
  const next = { at: sample.at, month: sample.month, seen };
  const spanMs = last === null ? 0 : sample.at - last.at;
  if (last === null || spanMs <= 0 || spanMs > LONGEST_SPAN_MS) return { last: next, frames: kept(history, sample.at) };
  const frame: Frame = { at: sample.at, spanMs, tenants, services };
  return { last: next, frames: [...kept(history, sample.at), frame].slice(-FRAMES_KEPT) };
}

/** Frames that are not older than what is kept; a wall clock that jumped back drops those of the future. */
function kept(history: RateHistory, now: number): readonly Frame[] {
  return history.frames.filter((frame) => frame.at < now && frame.at > now - FRAMES_KEPT * 1_000);
}

function isZero(counters: Counters): boolean {
  return (
    counters.receivedBytes === 0 && counters.sentBytes === 0 && counters.connections === 0 && counters.requests === 0
  );
}
