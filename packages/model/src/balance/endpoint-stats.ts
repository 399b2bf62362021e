import { type Endpoint, endpointKey } from '../table/entry.ts';
import { hashText } from './hash.ts';

/** An endpoint of a listener as one worker weighs it. Whoever opens connections counts them in `active`. */
export interface EndpointStats {
  /** The one of the newest table: the same address and port, perhaps another zone. */
  endpoint: Endpoint;
  activeConnections: number;
  /** For those who check or eject; they arrange the pool anew after a change. */
  isHealthy: boolean;
  /** Of its address and port: the same on every proxy. */
  readonly hash: number;
  /** Where it stands in its pool: see `arrangePool`, which sets it. */
  tier: PoolTier;
  /** When it began to ramp up (`slow-start.ts`), ms. */
  slowStartAt: number;
  /** What a ramping endpoint has saved up of its turns. */
  slowStartCredit: number;
}

export type PoolTier = typeof PREFERRED | typeof FALLBACK | typeof EXCLUDED;
/** Chosen while one of them has not been tried. */
export const PREFERRED = 0;
/** Chosen when all of the first were tried. */
export const FALLBACK = 1;
/** Unhealthy while others are not, or no longer in the table. */
export const EXCLUDED = 2;
const ENDPOINT_SEED = 0x3c6ef372;

/** An endpoint without connections, taken for healthy and warm. */
export function createEndpointStats(endpoint: Endpoint): EndpointStats {
  return {
    endpoint,
    activeConnections: 0,
    isHealthy: true,
    hash: hashText(endpointKey(endpoint), ENDPOINT_SEED),
    tier: EXCLUDED,
    slowStartAt: Number.NEGATIVE_INFINITY,
    slowStartCredit: 0,
  };
}

// A new endpoint beside others that serve already begins with a tenth of its share: caches are cold, code is not yet
// compiled, and least-connections would otherwise send it everything at once, because it has the fewest.
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

/**
 * The loads of `endpoints` after `before`: those that stay keep their counts and health. One that appears beside others
 * that stay begins to ramp up at `now` (ms of the balancers' clock); a first table, or one in which all are new, has nobody
 * else to serve meanwhile. `departed` gives back the load of one that had left with connections open.
 */
export function updateEndpointStats(
  endpoints: readonly Endpoint[],
  before: readonly EndpointStats[],
  { now, departed }: { readonly now: number; readonly departed: (key: string) => EndpointStats | undefined },
): readonly EndpointStats[] {
  const known = new Map(before.map((load) => [endpointKey(load.endpoint), load]));
  const keys = endpoints.map(endpointKey);
  const othersServe = keys.some((key) => known.has(key));
  return endpoints.map((endpoint, index) => {
    const key = keys[index] as string;
    const stays = known.get(key);
    const load = stays ?? departed(key) ?? createEndpointStats(endpoint);
    load.endpoint = endpoint;
    if (stays === undefined) load.slowStartAt = othersServe ? now : Number.NEGATIVE_INFINITY;
    return load;
  });
}
