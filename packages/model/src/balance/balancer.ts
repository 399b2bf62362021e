import type { Client } from '../match/route.ts';
import type { AffinityTable } from './affinity-table.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import type { EndpointStats } from './endpoint-stats.ts';

/**
 * Chooses among the endpoints of a listener. One per listener and worker, because some remember where they were.
 *
 *     const balancer = createBalancer(route, { random, now, memory });
 *     const pool = arrangePool(EMPTY_POOL, route.endpoints.map(createLoad), { zone: null, maglev: undefined });
 *     const load = balancer.choose(pool, client, []);
 *     load.active += 1;
 *
 * With nothing tried it allocates nothing.
 */
export interface Balancer {
  /** One that is not among `tried`; undefined: none is left. */
  choose(pool: EndpointPool, client: Client, tried: readonly EndpointStats[]): EndpointStats | undefined;
}

export interface BalancerOptions {
  /** In [0, 1). */
  readonly random: () => number;
  /** Milliseconds of a clock that never jumps and is the same in all threads of the process. */
  readonly now: () => number;
  /** Undefined: ClientIP affinity is what can be computed, which a new endpoint changes for some clients. */
  readonly affinityTable: AffinityTable | undefined;
}

/** Those of the list that were not tried; the list itself when nothing was. */
export function untriedEndpoints(
  loads: readonly EndpointStats[],
  tried: readonly EndpointStats[],
): readonly EndpointStats[] {
  return tried.length === 0 ? loads : loads.filter((load) => !isTried(load, tried));
}

/** An endpoint that left and came back meanwhile is another load, but has been tried all the same. */
export function isTried(load: EndpointStats, tried: readonly EndpointStats[]): boolean {
  for (let index = 0; index < tried.length; index += 1) {
    const { endpoint } = tried[index] as EndpointStats;
    if (endpoint.address === load.endpoint.address && endpoint.port === load.endpoint.port) return true;
  }
  return false;
}
