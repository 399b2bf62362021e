import { type Balancer, type BalancerOptions, untriedEndpoints } from './balancer.ts';
import { createWeightedDraw, weighingTime } from './draw.ts';
import type { EndpointStats } from './endpoint-load.ts';

/**
 * Of two different ones at random the one with fewer open connections ("power of two choices": M. Mitzenmacher, The
 * Power of Two Choices in Randomized Load Balancing, IEEE TPDS 12(10), 2001). Close to the true minimum, without a scan
 * and without every worker running to the same endpoint. One that ramps up is drawn less often: to divide its connections
 * by its weight would give it none while the others are idle.
 */
export function createLeastConnectionsBalancer({ random, now }: BalancerOptions): Balancer {
  const draw = createWeightedDraw(random);
  const pick = (loads: readonly EndpointStats[], at: number): EndpointStats | undefined => {
    if (loads.length < 2) return loads[0];
    const index = draw(loads, at, -1);
    const one = loads[index] as EndpointStats;
    const other = loads[draw(loads, at, index)] as EndpointStats;
    return other.activeConnections < one.activeConnections ? other : one;
  };
  return {
    choose(pool, _client, tried) {
      const at = weighingTime(pool, now);
      return pick(untriedEndpoints(pool.preferred, tried), at) ?? pick(untriedEndpoints(pool.fallback, tried), at);
    },
  };
}
