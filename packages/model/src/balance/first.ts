import { type Balancer, untried } from './balancer.ts';

/**
 * The first of those that work, by address: the others are its reserve. Weights mean nothing here: one endpoint has
 * everything, or nothing.
 */
export const FIRST_WORKING: Balancer = {
  choose: (pool, _client, tried) => untried(pool.first, tried)[0] ?? untried(pool.second, tried)[0],
};
