import { type Balancer, type BalancerOptions, untriedEndpoints } from './balancer.ts';
import { weighingTime } from './draw.ts';
import type { EndpointStats } from './endpoint-load.ts';
import { weightAt } from './slow-start.ts';

/** With a tenth in each round somebody has saved up a whole turn after ten, or eleven as floating point counts. */
const MAX_ROUNDS = 11;

/**
 * Each in turn. The turn is a position, so that a changed list goes on from where it was; it begins anywhere, or the first
 * clients of all workers would meet at one endpoint. One that ramps up lets turns pass until it has saved up a whole one.
 */
export function createRoundRobinBalancer({ random, now }: BalancerOptions): Balancer {
  let turn = Math.floor(random() * 0x1_0000_0000);
  const pick = (loads: readonly EndpointStats[], at: number): EndpointStats | undefined => {
    const count = loads.length;
    let chosen: EndpointStats | undefined;
    for (let passed = 0; passed < count * MAX_ROUNDS; passed += 1) {
      chosen = loads[turn % count] as EndpointStats;
      turn = (turn + 1) % 0x1_0000_0000;
      chosen.slowStartCredit += weightAt(chosen, at);
      if (chosen.slowStartCredit < 1) continue;
      chosen.slowStartCredit = 0;
      break;
    }
    return chosen;
  };
  return {
    choose(pool, _client, tried) {
      const at = weighingTime(pool, now);
      return pick(untriedEndpoints(pool.preferred, tried), at) ?? pick(untriedEndpoints(pool.fallback, tried), at);
    },
  };
}
