import type { RateHistory } from './history.ts';
import { pointsFor, type RatePoint } from './rates.ts';

/** The data of an event `history` of `/api/v1/live`. */
export interface LivePast {
  readonly tenants: readonly { readonly name: string; readonly points: readonly RatePoint[] }[];
}

/** What a small graph shows. */
const GRAPH_SECONDS = 120;

/**
 * The last two minutes of those who moved something in them, made one by one as they are taken: of a thousand tenants it is
 * megabytes. Empty when nobody did.
 */
export function* livePast(history: RateHistory, tenants: readonly string[]): Generator<LivePast> {
  const recent = { ...history, frames: history.frames.slice(-GRAPH_SECONDS) };
  const moved = new Set(recent.frames.flatMap((frame) => [...frame.tenants.keys()]));
  for (const name of tenants) {
    if (moved.has(name)) yield { tenants: [{ name, points: pointsFor(recent, { kind: 'tenant', id: name }) }] };
  }
}
