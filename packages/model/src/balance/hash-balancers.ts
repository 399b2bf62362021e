import type { Client, Route } from '../match/route.ts';
import { servicePortOf } from '../table/entry.ts';
import type { AffinityKey } from './affinity-table.ts';
import { type Balancer, type BalancerOptions, isTried, untriedFrom } from './balancer.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import { type EndpointStats, EXCLUDED, FALLBACK, PREFERRED } from './endpoint-stats.ts';
import { type ClientHash, hashClientAddress, hashPair, hashText } from './hash.ts';

// The balancers of this file ignore slow start, because changing weights would move clients between endpoints.

/** Creates a balancer that chooses by rendezvous hashing of the client. Needs no table, but costs O(endpoints) for each connection. */
export function createRendezvousBalancer(hash: ClientHash): Balancer {
  return {
    choose(pool, client, tried) {
      const hashed = hash(client);
      return chooseByRendezvous(pool.preferred, hashed, tried) ?? chooseByRendezvous(pool.fallback, hashed, tried);
    },
  };
}

/**
 * Returns the endpoint with the highest hash of (client, endpoint) that was not tried, where `client` is a 32-bit hash; undefined if all
 * were tried.
 * Every proxy computes the same choice without shared state. If an endpoint leaves, only the clients of that endpoint move (rendezvous
 * hashing: D. Thaler, C. Ravishankar, IEEE/ACM ToN 6(1), 1998).
 */
export function chooseByRendezvous(
  candidates: readonly EndpointStats[],
  client: number,
  tried: readonly EndpointStats[],
): EndpointStats | undefined {
  let best: EndpointStats | undefined;
  let highest = -1;
  for (let index = 0; index < candidates.length; index += 1) {
    const candidate = candidates[index] as EndpointStats;
    const score = hashPair(client, candidate.hash);
    if (score > highest && !isTried(candidate, tried)) {
      highest = score;
      best = candidate;
    }
  }
  return best;
}

/**
 * Creates a balancer that chooses by Maglev: one hash and one look-up in the table. If the endpoint of the slot is excluded or was tried,
 * the balancer takes the next slot with a usable endpoint, in the same order on every proxy. Clients of other endpoints keep their
 * endpoints. Uses rendezvous hashing if there is no table, or if the table has none of the endpoints that are left.
 */
export function createMaglevBalancer(hash: ClientHash): Balancer {
  return {
    choose(pool, client, tried) {
      const hashed = hash(client);
      const tier = untriedFrom(pool.preferred, 0, tried) === undefined ? FALLBACK : PREFERRED;
      const candidates = tier === PREFERRED ? pool.preferred : pool.fallback;
      const hasChoice = candidates.length - tried.length > 1;
      if (pool.maglev === undefined || !hasChoice) return chooseByRendezvous(candidates, hashed, tried);
      const { slots, endpoints } = pool.maglev;
      let slot = hashed % slots.length;
      for (let passed = 0; passed < slots.length; passed += 1) {
        const candidate = endpoints[slots[slot] as number];
        if (candidate?.tier === tier && !isTried(candidate, tried)) return candidate;
        slot = slot + 1 === slots.length ? 0 : slot + 1;
      }
      return chooseByRendezvous(candidates, hashed, tried);
    },
  };
}

const SERVICE_SEED = 0x1f83d9ab;
const HIGH_SEED = 0x5be0cd19;
const LOW_SEED = 0x243f6a88;

/**
 * Creates the balancer for `sessionAffinity: ClientIP`. Chooses the endpoint that the client got last, if that endpoint is usable and the
 * client's last connection began at most `timeoutMs` ago. Otherwise chooses by rendezvous hashing, with the same result on every proxy and
 * worker. So a new endpoint takes over only clients that this proxy does not remember. Affinity overrides the preferred zone.
 */
export function createClientAffinityBalancer(
  { service, listener }: Pick<Route, 'service' | 'listener'>,
  timeoutMs: number,
  { now, affinityTable }: BalancerOptions,
): Balancer {
  const port = hashText(`${service.uid}|${listener.protocol}|${servicePortOf(listener)}`, SERVICE_SEED);
  const timeout = timeoutMs / 1_000;
  // All calls reuse one key, so that a choice allocates no memory.
  const key: AffinityKey = { high: 0, low: 0 };
  return {
    choose(pool, client, tried) {
      const nowSeconds = Math.floor(now() / 1_000);
      setKey(key, client, port);
      const hash = affinityTable?.lookup(key, nowSeconds, timeout);
      const last = hash === undefined ? undefined : findEndpoint(pool, hash);
      const chosen = last !== undefined && !isTried(last, tried) ? last : chooseByAddress(pool, client, tried);
      if (chosen !== undefined) affinityTable?.record(key, chosen.hash, nowSeconds);
      return chosen;
    },
  };
}

function setKey(key: AffinityKey, { address }: Client, port: number): void {
  key.high = hashPair(port, hashText(address, HIGH_SEED));
  key.low = hashPair(hashText(address, LOW_SEED), port);
}

function findEndpoint({ all }: EndpointPool, hash: number): EndpointStats | undefined {
  for (let index = 0; index < all.length; index += 1) {
    const stats = all[index] as EndpointStats;
    if (stats.hash === hash) return stats.tier === EXCLUDED ? undefined : stats;
  }
  return undefined;
}

function chooseByAddress(
  pool: EndpointPool,
  client: Client,
  tried: readonly EndpointStats[],
): EndpointStats | undefined {
  const hashed = hashClientAddress(client);
  return chooseByRendezvous(pool.preferred, hashed, tried) ?? chooseByRendezvous(pool.fallback, hashed, tried);
}
