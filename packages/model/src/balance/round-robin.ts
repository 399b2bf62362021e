import { type Balancer, type BalancerTools, untried } from './balancer.ts';
import { weighedAt } from './draw.ts';
import type { EndpointLoad } from './endpoint-load.ts';
import { weightAt } from './slow-start.ts';

/** With a tenth in each round somebody has saved up a whole turn after ten, or eleven as floating point counts. */
const MOST_ROUNDS = 11;

/**
 * Each in turn. The turn is a position, so that a changed list goes on from where it was; it begins anywhere, or the first
 * clients of all workers would meet at one endpoint. One that ramps up lets turns pass until it has saved up a whole one.
 */
export function createRoundRobin({ random, now }: BalancerTools): Balancer {
  let turn = Math.floor(random() * 0x1_0000_0000);
  const pick = (loads: readonly EndpointLoad[], at: number): EndpointLoad | undefined => {
    const count = loads.length;
    let chosen: EndpointLoad | undefined;
    for (let passed = 0; passed < count * MOST_ROUNDS; passed += 1) {
      chosen = loads[turn % count] as EndpointLoad;
      turn = (turn + 1) % 0x1_0000_0000;
      chosen.credit += weightAt(chosen, at);
      if (chosen.credit < 1) continue;
      chosen.credit = 0;
      break;
    }
    return chosen;
  };
  return {
    choose(pool, _client, tried) {
      const at = weighedAt(pool, now);
      return pick(untried(pool.first, tried), at) ?? pick(untried(pool.second, tried), at);
    },
  };
}
