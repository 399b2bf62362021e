import { addCounters, type Counters, ZERO_COUNTERS } from '@weir/model';
import type { RateFrame, RateHistory } from './history.ts';

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
