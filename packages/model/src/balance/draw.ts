import type { EndpointStats } from './endpoint-load.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import { weightAt } from './slow-start.ts';

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
