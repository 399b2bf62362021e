import type { Endpoint } from '../table/entry.ts';
import { type EndpointStats, EXCLUDED, FALLBACK, PREFERRED, slowStartEnd } from './endpoint-stats.ts';
import type { MaglevTable } from './maglev-table.ts';

/** The endpoints of a route by tier. The pool is built once for each change, so that a new connection needs no filtering. */
export interface EndpointPool {
  /** All endpoints, in the order of the route. The order is the same on every proxy. */
  readonly all: readonly EndpointStats[];
  /** The endpoints that are chosen first. Empty only if there are no endpoints at all. */
  readonly preferred: readonly EndpointStats[];
  readonly fallback: readonly EndpointStats[];
  /** The endpoints that are neither preferred nor fallback, because they are unhealthy while other endpoints are healthy. */
  readonly excluded: readonly EndpointStats[];
  /** When the last slow start ends (ms); -Infinity if no endpoint had a slow start. */
  readonly slowStartEndsAt: number;
  /**
   * Undefined if the main thread has computed no table yet, or if the table has no preferred endpoint. The balancer then uses rendezvous
   * hashing.
   */
  readonly maglev: MaglevTable | undefined;
}

export interface ZoneFilter {
  /** The zone whose endpoints are preferred; null for no preference. */
  readonly zone: string | null;
}

export const EMPTY_POOL: EndpointPool = {
  all: [],
  preferred: [],
  fallback: [],
  excluded: [],
  slowStartEndsAt: Number.NEGATIVE_INFINITY,
  maglev: undefined,
};

/**
 * Builds the pool of `candidates`, to replace the pool `before`. Sets the tier of every endpoint in the two pools. The preferred endpoints
 * are the healthy endpoints of the zone, even if there is only one: with `trafficDistribution`, the owner of a Service must provide enough
 * endpoints in each zone. If the zone has no healthy endpoint, all healthy endpoints are preferred. The other healthy endpoints are the
 * fallback. If no endpoint is healthy, all endpoints count as healthy, because the health checks then do not show which endpoints work.
 */
export function buildPool(
  before: EndpointPool,
  candidates: readonly EndpointStats[],
  { zone, maglev }: ZoneFilter & { readonly maglev: MaglevTable | undefined },
): EndpointPool {
  for (const stats of before.all) stats.tier = EXCLUDED;
  const healthy = candidates.filter(({ isHealthy }) => isHealthy);
  const used = healthy.length > 0 ? healthy : candidates;
  const inZone = zone === null ? used : used.filter(({ endpoint }) => isInZone(endpoint, zone));
  const preferred = inZone.length > 0 ? inZone : used;
  for (const stats of candidates) stats.tier = EXCLUDED;
  for (const stats of used) stats.tier = FALLBACK;
  for (const stats of preferred) stats.tier = PREFERRED;
  return {
    all: candidates,
    preferred,
    fallback: used.filter(({ tier }) => tier === FALLBACK),
    excluded: used === candidates ? [] : candidates.filter(({ tier }) => tier === EXCLUDED),
    slowStartEndsAt: slowStartEnd(candidates),
    // Omits a table without a preferred endpoint, because the balancer would search all of its slots in vain.
    maglev: maglev?.endpoints.some(({ tier }) => tier === PREFERRED) ? maglev : undefined,
  };
}

function isInZone({ zone, otherZones }: Endpoint, own: string): boolean {
  return zone === own || otherZones?.includes(own) === true;
}
