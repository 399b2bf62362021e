import type { Endpoint } from '../table/entry.ts';
import { type EndpointStats, EXCLUDED, FALLBACK, PREFERRED, slowStartEnd } from './endpoint-stats.ts';
import type { MaglevTable } from './maglev-table.ts';

/** The endpoints of a listener by tier, computed once for each change, so that a connection needs no filtering. */
export interface EndpointPool {
  /** In the order of the route, which is the same on every proxy. */
  readonly all: readonly EndpointStats[];
  /** Empty only if there are no endpoints. */
  readonly preferred: readonly EndpointStats[];
  readonly fallback: readonly EndpointStats[];
  /** When the slow start of the newest endpoint ends (ms). */
  readonly slowStartEndsAt: number;
  /** Undefined until the main thread has computed a table; the balancer uses rendezvous hashing until then. */
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
  slowStartEndsAt: Number.NEGATIVE_INFINITY,
  maglev: undefined,
};

/**
 * Builds the pool of `candidates`, which replaces the pool `before`, and sets the tier of every endpoint of both. Preferred are the
 * healthy endpoints of the zone, even if there is only one (`trafficDistribution` leaves it to the owner to have enough endpoints
 * in each zone), or all healthy endpoints if the zone has none. The other healthy endpoints are the fallback. If no endpoint is
 * healthy, the health checks prove nothing, and all endpoints count as healthy.
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
    slowStartEndsAt: slowStartEnd(candidates),
    // A table without a preferred endpoint would be searched in vain.
    maglev: maglev?.endpoints.some(({ tier }) => tier === PREFERRED) ? maglev : undefined,
  };
}

function isInZone({ zone, otherZones }: Endpoint, own: string): boolean {
  return zone === own || otherZones?.includes(own) === true;
}
