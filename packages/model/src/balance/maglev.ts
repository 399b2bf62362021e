import { type Balancer, isTried, untriedEndpoints } from './balancer.ts';
import type { ClientHash } from './client-hash.ts';
import { FALLBACK, PREFERRED } from './endpoint-load.ts';
import { chooseByRendezvous } from './rendezvous.ts';

/**
 * One hash and one look-up. Where that leads to an endpoint which is ruled out, the next slots decide: the same ones on
 * every proxy, and the clients of the others stay where they are. Without a table, and for endpoints that are newer than
 * the table when nothing else is left, rendezvous decides. Weights would move clients while they change, so there are none.
 */
export function createMaglevBalancer(hash: ClientHash): Balancer {
  return {
    choose(pool, client, tried) {
      const hashed = hash(client);
      const first = untriedEndpoints(pool.preferred, tried);
      const left = first.length > 0 ? first : untriedEndpoints(pool.fallback, tried);
      if (pool.maglev === undefined || left.length < 2) return chooseByRendezvous(left, hashed);
      const rank = first.length > 0 ? PREFERRED : FALLBACK;
      const { slots, endpoints } = pool.maglev;
      let slot = hashed % slots.length;
      for (let passed = 0; passed < slots.length; passed += 1) {
        const load = endpoints[slots[slot] as number];
        if (load?.tier === rank && !isTried(load, tried)) return load;
        slot = slot + 1 === slots.length ? 0 : slot + 1;
      }
      return chooseByRendezvous(left, hashed);
    },
  };
}
