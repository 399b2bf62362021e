import type { Endpoint } from '../table/entry.ts';
import { type EndpointStats, EXCLUDED, FALLBACK, PREFERRED, slowStartEnd } from './endpoint-stats.ts';
import type { MaglevTable } from './maglev-table.ts';

/** The endpoints of a listener, sorted out once per change, so that nothing is left to filter for a connection. */
export interface EndpointPool {
  /** In the order of the route: the same on every proxy. */
  readonly all: readonly EndpointStats[];
  /** Empty only when there are no endpoints. */
  readonly preferred: readonly EndpointStats[];
  readonly fallback: readonly EndpointStats[];
  /** From then on (ms) all have their full share. */
  readonly slowStartEndsAt: number;
  /** Undefined until the main thread has computed one; others of this listener then serve in its place. */
  readonly maglev: MaglevTable | undefined;
}

export interface ZoneFilter {
  /** Of the endpoints to be preferred; null: no preference. */
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
 * The pool of `loads`, in place of the one before; sets their ranks. First are the healthy ones of the preferred zone
 * while there is at least one, however few (as `trafficDistribution` means it: the zone is to have enough of them); second
 * the other healthy ones. When none is healthy, health proves nothing and all are first.
 */
export function buildPool(
  before: EndpointPool,
  loads: readonly EndpointStats[],
  { zone, maglev }: ZoneFilter & { readonly maglev: MaglevTable | undefined },
): EndpointPool {
  for (const load of before.all) load.tier = EXCLUDED;
  const anyHealthy = loads.some((load) => load.isHealthy);
  const used = anyHealthy ? loads.filter((load) => load.isHealthy) : loads;
  const near = zone === null ? used : used.filter(({ endpoint }) => isInZone(endpoint, zone));
  const preferred = near.length > 0 ? near : used;
  for (const load of loads) load.tier = EXCLUDED;
  for (const load of used) load.tier = FALLBACK;
  for (const load of preferred) load.tier = PREFERRED;
  return {
    all: loads,
    preferred,
    fallback: used.filter(({ tier }) => tier === FALLBACK),
    slowStartEndsAt: slowStartEnd(loads),
    // One in which nothing can be found any more would be searched in vain.
    maglev: maglev?.endpoints.some(({ tier }) => tier === PREFERRED) ? maglev : undefined,
  };
}

function isInZone({ zone, otherZones }: Endpoint, own: string): boolean {
  return zone === own || otherZones?.includes(own) === true;
}
