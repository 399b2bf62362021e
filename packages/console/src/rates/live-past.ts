import type { RateHistory } from './history.ts';
import { type RatePoint, ratePointsFor } from './rates.ts';

/** The data of an event `history` of `/api/v1/live`. */
export interface LiveHistory {
  readonly tenants: readonly { readonly name: string; readonly points: readonly RatePoint[] }[];
}

/** What a small graph shows. */
const HISTORY_SECONDS = 120;

/**
 * The last two minutes of those who moved something in them, made one by one as they are taken: of a thousand tenants it is
 * megabytes. Empty when nobody did.
 */
export function* liveHistoriesFor(history: RateHistory, tenants: readonly string[]): Generator<LiveHistory> {
  const recent = { ...history, frames: history.frames.slice(-HISTORY_SECONDS) };
  const moved = new Set(recent.frames.flatMap((frame) => [...frame.tenants.keys()]));
  for (const name of tenants) {
    if (moved.has(name)) yield { tenants: [{ name, points: ratePointsFor(recent, { kind: 'tenant', id: name }) }] };
  }
}
