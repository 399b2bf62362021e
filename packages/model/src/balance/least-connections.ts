import { type Balancer, type BalancerTools, untried } from './balancer.ts';
import { createDraw, weighedAt } from './draw.ts';
import type { EndpointLoad } from './endpoint-load.ts';

/**
 * Of two different ones at random the one with fewer open connections ("power of two choices": M. Mitzenmacher, The
 * Power of Two Choices in Randomized Load Balancing, IEEE TPDS 12(10), 2001). Close to the true minimum, without a scan
 * and without every worker running to the same endpoint. One that ramps up is drawn less often: to divide its connections
 * by its weight would give it none while the others are idle.
 */
export function createLeastConnections({ random, now }: BalancerTools): Balancer {
  const draw = createDraw(random);
  const pick = (loads: readonly EndpointLoad[], at: number): EndpointLoad | undefined => {
    if (loads.length < 2) return loads[0];
    const index = draw(loads, at, -1);
    const one = loads[index] as EndpointLoad;
    const other = loads[draw(loads, at, index)] as EndpointLoad;
    return other.active < one.active ? other : one;
  };
  return {
    choose(pool, _client, tried) {
      const at = weighedAt(pool, now);
      return pick(untried(pool.first, tried), at) ?? pick(untried(pool.second, tried), at);
    },
  };
}
