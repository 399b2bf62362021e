import { type Balancer, type BalancerOptions, untriedEndpoints } from './balancer.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import { type EndpointStats, weightAt } from './endpoint-stats.ts';

/**
 * Returns the index of a random candidate, with probability proportional to its weight at `now` (ms). Never returns the index
 * `except`; -1 excludes no candidate. At least one candidate must remain.
 */
export type WeightedDraw = (candidates: readonly EndpointStats[], now: number, except: number) => number;
/**
 * The most draws for one choice. Each draw is accepted with a probability of at least 0.1, so 64 draws in a row fail once in a
 * thousand times.
 */
const MAX_DRAWS = 64;

/** Draws by rejection sampling: uniformly, until a draw is accepted by its weight. `random` returns numbers in [0, 1). */
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

/** The time at which to weigh a pool (ms); Infinity, without reading the clock, if no endpoint is in slow start. */
export function weighingTime(pool: EndpointPool, now: () => number): number {
  return pool.slowStartEndsAt === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : now();
}

/** Chooses a random endpoint, with probability proportional to its weight. */
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
 * Draws two endpoints and chooses the one with fewer open connections ("power of two choices": M. Mitzenmacher, The Power of Two
 * Choices in Randomized Load Balancing, IEEE TPDS 12(10), 2001). The result is close to the true minimum, without a scan, and
 * workers do not all choose the same endpoint. During slow start an endpoint is drawn less often; dividing its connections by its
 * weight instead would give it no connection while the other endpoints are idle.
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
 * The most rounds for one choice. With a credit of at least 0.1 in each round, some endpoint has a whole turn after 10 rounds, or
 * 11 with rounding errors.
 */
const MAX_ROUNDS = 11;

/**
 * Chooses the endpoints in turn. Remembers a position in the list, so the rotation continues after the list changes. The first position is random: otherwise the first clients of all workers would get the same endpoint. During slow start an endpoint skips
 * turns until it has accumulated a whole turn.
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
