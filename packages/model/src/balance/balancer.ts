import type { Client } from '../match/route.ts';
import type { AffinityTable } from './affinity-table.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import type { EndpointStats } from './endpoint-stats.ts';

/**
 * Chooses among the endpoints of a route. Each worker has its own balancer for each route, because some balancers keep state.
 *
 *     const balancer = createBalancer(route, { random, now, affinityTable });
 *     const pool = buildPool(EMPTY_POOL, route.endpoints.map(createEndpointStats), { zone: null, maglev: undefined });
 *     const stats = balancer.choose(pool, client, []);
 *     stats.activeConnections += 1;
 *
 * A call of `choose` with an empty `tried` allocates no memory.
 */
export interface Balancer {
  /**
   * Returns an endpoint of the pool that is not among `tried`; undefined if all were tried. Costs about the same however many endpoints
   * were tried.
   */
  choose(pool: EndpointPool, client: Client, tried: readonly EndpointStats[]): EndpointStats | undefined;
}

export interface BalancerOptions {
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  /** Returns milliseconds of a monotonic clock that all threads of the process share. */
  readonly now: () => number;
  /**
   * Remembers the last endpoint of each client for ClientIP affinity. If undefined, ClientIP affinity depends only on a hash of the client,
   * and a new endpoint takes over some clients of the other endpoints.
   */
  readonly affinityTable: AffinityTable | undefined;
}

/**
 * Returns the first candidate at or after the index `from` that was not tried; undefined if all were tried. After the last candidate the
 * search continues with the first. The cost does not depend on the number of candidates: of `tried.length + 1` different candidates, at
 * least one was not tried.
 */
export function untriedFrom(
  candidates: readonly EndpointStats[],
  from: number,
  tried: readonly EndpointStats[],
): EndpointStats | undefined {
  const count = candidates.length;
  for (let step = 0; step < count && step <= tried.length; step += 1) {
    const candidate = candidates[(from + step) % count] as EndpointStats;
    if (!isTried(candidate, tried)) return candidate;
  }
  return undefined;
}

/** Whether an endpoint was tried. Compares address and port, because an endpoint that left and returned has a new stats object. */
export function isTried(candidate: EndpointStats, tried: readonly EndpointStats[]): boolean {
  for (let index = 0; index < tried.length; index += 1) {
    const { endpoint } = tried[index] as EndpointStats;
    if (endpoint.address === candidate.endpoint.address && endpoint.port === candidate.endpoint.port) return true;
  }
  return false;
}
