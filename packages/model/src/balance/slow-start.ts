// A new endpoint beside others that serve already begins with a tenth of its share: caches are cold, code is not yet
// compiled, and least-connections would otherwise send it everything at once, because it has the fewest.
import type { EndpointStats } from './endpoint-load.ts';

const SLOW_START_MS = 30_000;
const MIN_WEIGHT = 0.1;

/** From 0.1, when it appeared, to 1, half a minute later. Times in ms. */
export function weightAt(load: EndpointStats, now: number): number {
  const share = (now - load.slowStartAt) / SLOW_START_MS;
  return share >= 1 ? 1 : Math.max(MIN_WEIGHT, MIN_WEIGHT + (1 - MIN_WEIGHT) * share);
}

/** From when on all of them have their full share; -Infinity: none has begun to ramp up. */
export function slowStartEnd(loads: readonly EndpointStats[]): number {
  let latest = Number.NEGATIVE_INFINITY;
  for (const { slowStartAt } of loads) if (slowStartAt > latest) latest = slowStartAt;
  return latest + SLOW_START_MS;
}
