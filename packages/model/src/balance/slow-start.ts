// A new endpoint beside others that serve already begins with a tenth of its share: caches are cold, code is not yet
// compiled, and least-connections would otherwise send it everything at once, because it has the fewest.
import type { EndpointLoad } from './endpoint-load.ts';

const SLOW_START_MS = 30_000;
const LEAST = 0.1;

/** From 0.1, when it appeared, to 1, half a minute later. Times in ms. */
export function weightAt(load: EndpointLoad, now: number): number {
  const share = (now - load.warmSince) / SLOW_START_MS;
  return share >= 1 ? 1 : Math.max(LEAST, LEAST + (1 - LEAST) * share);
}

/** From when on all of them have their full share; -Infinity: none has begun to ramp up. */
export function warmFrom(loads: readonly EndpointLoad[]): number {
  let latest = Number.NEGATIVE_INFINITY;
  for (const { warmSince } of loads) if (warmSince > latest) latest = warmSince;
  return latest + SLOW_START_MS;
}
