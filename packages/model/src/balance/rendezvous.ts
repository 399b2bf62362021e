import { type Balancer, untriedEndpoints } from './balancer.ts';
import type { ClientHash } from './client-hash.ts';
import type { EndpointStats } from './endpoint-load.ts';
import { hashPair } from './hash.ts';

/** Where `rendezvous` leads: no table, O(endpoints) for each connection. Weights would move clients while they change. */
export function createRendezvousBalancer(hash: ClientHash): Balancer {
  return {
    choose(pool, client, tried) {
      const hashed = hash(client);
      return (
        chooseByRendezvous(untriedEndpoints(pool.preferred, tried), hashed) ??
        chooseByRendezvous(untriedEndpoints(pool.fallback, tried), hashed)
      );
    },
  };
}

/**
 * The endpoint with the highest hash of (client, endpoint): the same on every proxy without shared state, and when one
 * goes only its own clients move (rendezvous hashing: D. Thaler, C. Ravishankar, IEEE/ACM ToN 6(1), 1998).
 */
export function chooseByRendezvous(loads: readonly EndpointStats[], client: number): EndpointStats | undefined {
  let best: EndpointStats | undefined;
  let highest = -1;
  for (let index = 0; index < loads.length; index += 1) {
    const load = loads[index] as EndpointStats;
    const score = hashPair(client, load.hash);
    if (score > highest) {
      highest = score;
      best = load;
    }
  }
  return best;
}
