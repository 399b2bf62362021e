import { type Balancer, untried } from './balancer.ts';
import type { ClientHash } from './client-hash.ts';
import type { EndpointLoad } from './endpoint-load.ts';
import { hashPair } from './hash.ts';

/** Where `rendezvous` leads: no table, O(endpoints) for each connection. Weights would move clients while they change. */
export function createRendezvous(hash: ClientHash): Balancer {
  return {
    choose(pool, client, tried) {
      const hashed = hash(client);
      return rendezvous(untried(pool.first, tried), hashed) ?? rendezvous(untried(pool.second, tried), hashed);
    },
  };
}

/**
 * The endpoint with the highest hash of (client, endpoint): the same on every proxy without shared state, and when one
 * goes only its own clients move (rendezvous hashing: D. Thaler, C. Ravishankar, IEEE/ACM ToN 6(1), 1998).
 */
export function rendezvous(loads: readonly EndpointLoad[], client: number): EndpointLoad | undefined {
  let best: EndpointLoad | undefined;
  let highest = -1;
  for (let index = 0; index < loads.length; index += 1) {
    const load = loads[index] as EndpointLoad;
    const score = hashPair(client, load.hash);
    if (score > highest) {
      highest = score;
      best = load;
    }
  }
  return best;
}
