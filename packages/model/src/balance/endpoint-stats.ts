import { type Endpoint, endpointKey } from '../table/entry.ts';
import { hashText } from './hash.ts';

/** The state of one endpoint of a listener in one worker. The session that opens a connection counts it in `activeConnections`. */
export interface EndpointStats {
  /** From the newest table: the address and port stay, the zone may change. */
  endpoint: Endpoint;
  activeConnections: number;
  /** Set by health checks and ejections, which then call `buildPool` again. */
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
/** Unhealthy while other endpoints are healthy, or no longer in the table. */
export const EXCLUDED = 2;
const ENDPOINT_SEED = 0x3c6ef372;

/** The stats of an endpoint without connections that is healthy and not in slow start. */
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

// The duration of slow start. An endpoint that joins serving endpoints begins with a tenth of its share, because its caches are
// cold and its code is not yet compiled, and because least-connections would otherwise send all new connections to it.
const SLOW_START_MS = 30_000;
const MIN_WEIGHT = 0.1;

/** The weight of an endpoint at `now` (ms): rises from 0.1 to 1 within the 30 s of slow start. */
export function weightAt(stats: EndpointStats, now: number): number {
  const share = (now - stats.slowStartAt) / SLOW_START_MS;
  return share >= 1 ? 1 : Math.max(MIN_WEIGHT, MIN_WEIGHT + (1 - MIN_WEIGHT) * share);
}

/** When the slow start of all endpoints is over (ms); -Infinity if none is in slow start. */
export function slowStartEnd(endpoints: readonly EndpointStats[]): number {
  let latest = Number.NEGATIVE_INFINITY;
  for (const { slowStartAt } of endpoints) if (slowStartAt > latest) latest = slowStartAt;
  return latest + SLOW_START_MS;
}

/**
 * The stats of the endpoints of a new table. Endpoints that stay keep their stats. An endpoint that joins endpoints that stay begins
 * slow start at `now` (ms of the balancers' clock); if all endpoints are new, none does, since no other endpoint could take their
 * share. `departed` returns the stats of an endpoint that left while it had open connections.
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
