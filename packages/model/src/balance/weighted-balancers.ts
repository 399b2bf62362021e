import { type Balancer, type BalancerOptions, untriedEndpoints } from './balancer.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import { type EndpointStats, weightAt } from './endpoint-stats.ts';

/**
 * Returns the index of a random candidate, with probability proportional to its weight at `now` (ms). Never returns the index
 * `except`; -1 excludes no candidate. At least one candidate must remain.
 */
export type WeightedDraw = (candidates: readonly EndpointStats[], now: number, except: number) => number;
/**
 * The most draws for one choice. Each draw is accepted with a probability of at least 0.1, so all 64 draws are rejected in at most 0.12 %
 * of choices.
 */
const MAX_DRAWS = 64;

/**
 * Returns a `WeightedDraw` by rejection sampling: draws uniformly, and accepts a candidate with the probability of its weight. `random`
 * returns numbers in [0, 1).
 */
export function createWeightedDraw(random: () => number): WeightedDraw {
  return (candidates, now, except) => {
    const count = candidates.length;
    let index = 0;
    for (let drawn = 0; drawn < MAX_DRAWS; drawn += 1) {
      index = except < 0 ? Math.floor(random() * count) : (except + 1 + Math.floor(random() * (count - 1))) % count;
      const weight = weightAt(candidates[index] as EndpointStats, now);
      if (weight >= 1 || random() < weight) break;
    }
    return index;
  };
}

/**
 * Returns the time (ms) for which to compute the weights of a pool. If no endpoint had a slow start, returns Infinity without reading the
 * clock.
 */
export function weighingTime(pool: EndpointPool, now: () => number): number {
  return pool.slowStartEndsAt === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : now();
}

/** Creates a balancer that chooses a random endpoint, with probability proportional to its weight. */
export function createRandomBalancer({ random, now }: BalancerOptions): Balancer {
  const draw = createWeightedDraw(random);
  const pick = (candidates: readonly EndpointStats[], at: number): EndpointStats | undefined =>
    candidates.length < 2 ? candidates[0] : candidates[draw(candidates, at, -1)];
  return {
    choose(pool, _client, tried) {
      const at = weighingTime(pool, now);
      return pick(untriedEndpoints(pool.preferred, tried), at) ?? pick(untriedEndpoints(pool.fallback, tried), at);
    },
  };
}

/**
 * Creates a balancer that draws two endpoints and chooses the endpoint with fewer open connections ("power of two choices": M.
 * Mitzenmacher, The Power of Two Choices in Randomized Load Balancing, IEEE TPDS 12(10), 2001). The result is close to the true minimum
 * without a scan of all endpoints, and workers do not all choose the same endpoint. An endpoint in slow start is drawn less often.
 */
export function createLeastConnectionsBalancer({ random, now }: BalancerOptions): Balancer {
  const draw = createWeightedDraw(random);
  const pick = (candidates: readonly EndpointStats[], at: number): EndpointStats | undefined => {
    if (candidates.length < 2) return candidates[0];
    const index = draw(candidates, at, -1);
    const first = candidates[index] as EndpointStats;
    const second = candidates[draw(candidates, at, index)] as EndpointStats;
    return second.activeConnections < first.activeConnections ? second : first;
  };
  return {
    choose(pool, _client, tried) {
      const at = weighingTime(pool, now);
      return pick(untriedEndpoints(pool.preferred, tried), at) ?? pick(untriedEndpoints(pool.fallback, tried), at);
    },
  };
}

/**
 * The most rounds over the list for one choice. Each endpoint gets a credit of at least 0.1 in each round. So some endpoint reaches a
 * credit of 1 after 10 rounds, or after 11 rounds with rounding errors.
 */
const MAX_ROUNDS = 11;

/**
 * Creates a balancer that chooses the endpoints in turn. The balancer remembers a position in the list, so the rotation continues after the
 * list changes. The first position is random, because otherwise the first clients of all workers would get the same endpoint. During slow
 * start an endpoint skips turns until its credit reaches 1.
 */
export function createRoundRobinBalancer({ random, now }: BalancerOptions): Balancer {
  let turn = Math.floor(random() * 0x1_0000_0000);
  const pick = (candidates: readonly EndpointStats[], at: number): EndpointStats | undefined => {
    const count = candidates.length;
    let chosen: EndpointStats | undefined;
    for (let passed = 0; passed < count * MAX_ROUNDS; passed += 1) {
      chosen = candidates[turn % count] as EndpointStats;
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
