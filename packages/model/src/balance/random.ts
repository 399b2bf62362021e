import { type Balancer, type BalancerTools, untried } from './balancer.ts';
import { createDraw, weighedAt } from './draw.ts';
import type { EndpointLoad } from './endpoint-load.ts';

/** One at random, each as likely as its weight. */
export function createRandom({ random, now }: BalancerTools): Balancer {
  const draw = createDraw(random);
  const pick = (loads: readonly EndpointLoad[], at: number): EndpointLoad | undefined =>
    loads.length < 2 ? loads[0] : loads[draw(loads, at, -1)];
  return {
    choose(pool, _client, tried) {
      const at = weighedAt(pool, now);
      return pick(untried(pool.first, tried), at) ?? pick(untried(pool.second, tried), at);
    },
  };
}
