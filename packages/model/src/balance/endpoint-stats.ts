import { type Endpoint, endpointKey } from '../table/entry.ts';
import { hashText } from './hash.ts';

/** The state of one endpoint of a route in one worker. */
export interface EndpointStats {
  /** The endpoint in the newest table. The address and port never change, but the zone may. */
  endpoint: Endpoint;
  /** TCP sessions and UDP flows of the endpoint; with HTTP, requests without a complete response. An idle connection does not count. */
  activeConnections: number;
  /** HTTP requests in a row that the endpoint has failed to answer, see `EJECTION_THRESHOLD_ANSWERS`. */
  failedAnswers: number;
  /** Set by health checks and ejections. `buildPool` must be called after each change. */
  isHealthy: boolean;
  /** Hash of address and port, the same on every proxy. */
  readonly hash: number;
  /** Set by `buildPool`. */
  tier: PoolTier;
  /** When slow start began (ms); -Infinity without slow start. */
  slowStartAt: number;
  /** The fraction of a round-robin turn that the endpoint has accumulated during slow start. */
  slowStartCredit: number;
}

export type PoolTier = typeof PREFERRED | typeof FALLBACK | typeof EXCLUDED;
export const PREFERRED = 0;
/** Chosen only after all preferred endpoints were tried. */
export const FALLBACK = 1;
/** Not chosen by balancers: unhealthy while other endpoints are healthy, or no longer in the table. */
export const EXCLUDED = 2;
const ENDPOINT_SEED = 0x3c6ef372;

/** Returns the stats of a new endpoint: healthy, without connections, and not in slow start. */
export function createEndpointStats(endpoint: Endpoint): EndpointStats {
  return {
    endpoint,
    activeConnections: 0,
    failedAnswers: 0,
    isHealthy: true,
    hash: hashText(endpointKey(endpoint), ENDPOINT_SEED),
    tier: EXCLUDED,
    slowStartAt: Number.NEGATIVE_INFINITY,
    slowStartCredit: 0,
  };
}

// The duration of slow start. An endpoint that joins serving endpoints begins with a tenth of its share, because its caches are cold and
// its code is not compiled yet. Without slow start, least-connections would choose such an endpoint whenever it is drawn, because it has
// the fewest connections.
const SLOW_START_MS = 30_000;
const MIN_WEIGHT = 0.1;

/** Returns the weight of an endpoint at `now` (ms). The weight rises from 0.1 to 1 within the 30 s of slow start. */
export function weightAt(stats: EndpointStats, now: number): number {
  const share = (now - stats.slowStartAt) / SLOW_START_MS;
  return share >= 1 ? 1 : Math.max(MIN_WEIGHT, MIN_WEIGHT + (1 - MIN_WEIGHT) * share);
}

/** Returns when the last slow start of the endpoints ends (ms); -Infinity if no endpoint had a slow start. */
export function slowStartEnd(endpoints: readonly EndpointStats[]): number {
  let latest = Number.NEGATIVE_INFINITY;
  for (const { slowStartAt } of endpoints) if (slowStartAt > latest) latest = slowStartAt;
  return latest + SLOW_START_MS;
}

/**
 * Returns the stats for the endpoints of a new table. An endpoint that was in the old table keeps its stats. A new endpoint begins slow
 * start at `now` (ms of the balancers' clock) if at least one endpoint of the old table stays. If all endpoints are new, no endpoint begins
 * slow start, because no other endpoint could take its share. `departed` returns the stats of an endpoint that left while connections to it
 * were open.
 */
export function updateEndpointStats(
  endpoints: readonly Endpoint[],
  before: readonly EndpointStats[],
  { now, departed }: { readonly now: number; readonly departed: (key: string) => EndpointStats | undefined },
): readonly EndpointStats[] {
  const statsByKey = new Map(before.map((stats) => [endpointKey(stats.endpoint), stats]));
  const keys = endpoints.map(endpointKey);
  const someStay = keys.some((key) => statsByKey.has(key));
  return endpoints.map((endpoint, index) => {
    const key = keys[index] as string;
    const kept = statsByKey.get(key);
    const stats = kept ?? departed(key) ?? createEndpointStats(endpoint);
    stats.endpoint = endpoint;
    if (kept === undefined) stats.slowStartAt = someStay ? now : Number.NEGATIVE_INFINITY;
    return stats;
  });
}
