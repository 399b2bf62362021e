import { type Balancer, type BalancerOptions, untriedEndpoints } from './balancer.ts';
import { createWeightedDraw, weighingTime } from './draw.ts';
import type { EndpointStats } from './endpoint-load.ts';

/** One at random, each as likely as its weight. */
export function createRandomBalancer({ random, now }: BalancerOptions): Balancer {
  const draw = createWeightedDraw(random);
  const pick = (loads: readonly EndpointStats[], at: number): EndpointStats | undefined =>
    loads.length < 2 ? loads[0] : loads[draw(loads, at, -1)];
  return {
    choose(pool, _client, tried) {
      const at = weighingTime(pool, now);
      return pick(untriedEndpoints(pool.preferred, tried), at) ?? pick(untriedEndpoints(pool.fallback, tried), at);
    },
  };
}
