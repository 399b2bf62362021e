import type { Endpoint } from '../table/entry.ts';
import { type EndpointLoad, FIRST, SECOND, UNUSED } from './endpoint-load.ts';
import type { MaglevTable } from './maglev-slots.ts';
import { warmFrom } from './slow-start.ts';

/** The endpoints of a listener, sorted out once per change, so that nothing is left to filter for a connection. */
export interface EndpointPool {
  /** In the order of the route: the same on every proxy. */
  readonly all: readonly EndpointLoad[];
  /** Empty only when there are no endpoints. */
  readonly first: readonly EndpointLoad[];
  readonly second: readonly EndpointLoad[];
  /** From then on (ms) all have their full share. */
  readonly warmAt: number;
  /** Undefined until the main thread has computed one; others of this listener then serve in its place. */
  readonly maglev: MaglevTable | undefined;
}

export interface Preference {
  /** Of the endpoints to be preferred; null: no preference. */
  readonly zone: string | null;
}

export const EMPTY_POOL: EndpointPool = {
  all: [],
  first: [],
  second: [],
  warmAt: Number.NEGATIVE_INFINITY,
  maglev: undefined,
};

/**
 * The pool of `loads`, in place of the one before; sets their ranks. First are the healthy ones of the preferred zone
 * while there is at least one, however few (as `trafficDistribution` means it: the zone is to have enough of them); second
 * the other healthy ones. When none is healthy, health proves nothing and all are first.
 */
export function arrangePool(
  before: EndpointPool,
  loads: readonly EndpointLoad[],
  { zone, maglev }: Preference & { readonly maglev: MaglevTable | undefined },
): EndpointPool {
  for (const load of before.all) load.rank = UNUSED;
  const anyHealthy = loads.some((load) => load.isHealthy);
  const used = anyHealthy ? loads.filter((load) => load.isHealthy) : loads;
  const near = zone === null ? used : used.filter(({ endpoint }) => isNear(endpoint, zone));
  const first = near.length > 0 ? near : used;
  for (const load of loads) load.rank = UNUSED;
  for (const load of used) load.rank = SECOND;
  for (const load of first) load.rank = FIRST;
  return {
    all: loads,
    first,
    second: used.filter(({ rank }) => rank === SECOND),
    warmAt: warmFrom(loads),
    // One in which nothing can be found any more would be searched in vain.
    maglev: maglev?.loads.some(({ rank }) => rank === FIRST) ? maglev : undefined,
  };
}

function isNear({ zone, otherZones }: Endpoint, own: string): boolean {
  return zone === own || otherZones?.includes(own) === true;
}
