import { type Balancer, untriedEndpoints } from './balancer.ts';

/**
 * The first of those that work, by address: the others are its reserve. Weights mean nothing here: one endpoint has
 * everything, or nothing.
 */
export const FIRST_AVAILABLE_BALANCER: Balancer = {
  choose: (pool, _client, tried) =>
    untriedEndpoints(pool.preferred, tried)[0] ?? untriedEndpoints(pool.fallback, tried)[0],
};
