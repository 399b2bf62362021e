import { type Balancer, type BalancerOptions, isTried, untriedFrom } from './balancer.ts';
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

/** The most draws of a candidate that was not tried. */
const MAX_REDRAWS = 16;

/**
 * Returns a candidate that was not tried, drawn with probability proportional to its weight at `now` (ms); undefined if all were tried. If
 * every draw finds a tried candidate, takes the next candidate of the list that was not tried.
 */
type UntriedDraw = (
  candidates: readonly EndpointStats[],
  tried: readonly EndpointStats[],
  now: number,
) => EndpointStats | undefined;

function createUntriedDraw(draw: WeightedDraw): UntriedDraw {
  return (candidates, tried, now) => {
    if (candidates.length < 2) return untriedFrom(candidates, 0, tried);
    let index = 0;
    for (let drawn = 0; drawn < MAX_REDRAWS; drawn += 1) {
      index = draw(candidates, now, -1);
      const candidate = candidates[index] as EndpointStats;
      if (!isTried(candidate, tried)) return candidate;
    }
    return untriedFrom(candidates, index, tried);
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
  const draw = createUntriedDraw(createWeightedDraw(random));
  return {
    choose(pool, _client, tried) {
      const at = weighingTime(pool, now);
      return draw(pool.preferred, tried, at) ?? draw(pool.fallback, tried, at);
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
  const drawUntried = createUntriedDraw(draw);
  const pick: UntriedDraw = (candidates, tried, at) => {
    if (candidates.length < 2) return untriedFrom(candidates, 0, tried);
    // For a retry, both draws may find the same endpoint. An endpoint that was tried must not take part in the comparison, because an
    // endpoint that refuses connections has the fewest.
    if (tried.length > 0) return lessBusy(drawUntried(candidates, tried, at), drawUntried(candidates, tried, at));
    const index = draw(candidates, at, -1);
    return lessBusy(candidates[index], candidates[draw(candidates, at, index)]);
  };
  return {
    choose(pool, _client, tried) {
      const at = weighingTime(pool, now);
      return pick(pool.preferred, tried, at) ?? pick(pool.fallback, tried, at);
    },
  };
}

/** Returns the endpoint with fewer open connections; `first` if both have equally many. */
function lessBusy(first: EndpointStats | undefined, second: EndpointStats | undefined): EndpointStats | undefined {
  if (first === undefined || second === undefined) return first;
  return second.activeConnections < first.activeConnections ? second : first;
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
  const pick: UntriedDraw = (candidates, tried, at) => {
    const count = candidates.length;
    let chosen = untriedFrom(candidates, 0, tried);
    if (chosen === undefined) return undefined;
    for (let passed = 0; passed < count * MAX_ROUNDS; passed += 1) {
      const candidate = candidates[turn % count] as EndpointStats;
      turn = (turn + 1) % 0x1_0000_0000;
      if (isTried(candidate, tried)) continue;
      chosen = candidate;
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
      return pick(pool.preferred, tried, at) ?? pick(pool.fallback, tried, at);
    },
  };
}
