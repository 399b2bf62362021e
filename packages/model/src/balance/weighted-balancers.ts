import { type Balancer, type BalancerOptions, untriedEndpoints } from './balancer.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import { type EndpointStats, weightAt } from './endpoint-stats.ts';

/**
 * The index of one of the list at random, each as likely as its weight at `now`; other than `except`, -1 for none. There
 * is at least one to draw.
 */
export type WeightedDraw = (loads: readonly EndpointStats[], now: number, except: number) => number;
/** Each draw is accepted with a probability of at least 0.1: of so many none is once in a thousand times. */
const MAX_DRAWS = 64;

/** Drawn evenly until one is accepted by its weight. `random` gives numbers in [0, 1). */
export function createWeightedDraw(random: () => number): WeightedDraw {
  return (loads, now, except) => {
    const count = loads.length;
    let index = 0;
    for (let drawn = 0; drawn < MAX_DRAWS; drawn += 1) {
      index = except < 0 ? Math.floor(random() * count) : (except + 1 + Math.floor(random() * (count - 1))) % count;
      const weight = weightAt(loads[index] as EndpointStats, now);
      if (weight >= 1 || random() < weight) break;
    }
    return index;
  };
}

/** The time to weigh a pool at: where nothing ramps up no clock is read. */
export function weighingTime(pool: EndpointPool, now: () => number): number {
  return pool.slowStartEndsAt === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : now();
}

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
