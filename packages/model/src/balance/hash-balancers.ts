import type { Client, Route } from '../match/route.ts';
import type { AffinityKey } from './affinity-table.ts';
import { type Balancer, type BalancerOptions, isTried, untriedEndpoints } from './balancer.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import { type EndpointStats, EXCLUDED, FALLBACK, PREFERRED } from './endpoint-stats.ts';
import { type ClientHash, hashClientAddress, hashPair, hashText } from './hash.ts';

// No balancer of this file applies slow start: changing weights would move clients between endpoints.

/** Chooses by rendezvous hashing of the client: needs no table, costs O(endpoints) for each connection. */
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
 * Returns the endpoint with the highest hash of (client, endpoint); `client` is a 32-bit hash. Every proxy computes the same choice
 * without shared state, and when an endpoint leaves, only its clients move (rendezvous hashing: D. Thaler, C. Ravishankar, IEEE/ACM
 * ToN 6(1), 1998). Returns undefined if there is no candidate.
 */
export function chooseByRendezvous(candidates: readonly EndpointStats[], client: number): EndpointStats | undefined {
  let best: EndpointStats | undefined;
  let highest = -1;
  for (let index = 0; index < candidates.length; index += 1) {
    const candidate = candidates[index] as EndpointStats;
    const score = hashPair(client, candidate.hash);
    if (score > highest) {
      highest = score;
      best = candidate;
    }
  }
  return best;
}

/**
 * Chooses by Maglev: one hash and one look-up in the table. If the slot's endpoint is excluded or was tried, the next slots decide,
 * in the same order on every proxy, while clients of other endpoints stay. Rendezvous hashing decides if there is no table, or if
 * only endpoints are left that are newer than the table.
 */
export function createMaglevBalancer(hash: ClientHash): Balancer {
  return {
    choose(pool, client, tried) {
      const hashed = hash(client);
      const preferred = untriedEndpoints(pool.preferred, tried);
      const candidates = preferred.length > 0 ? preferred : untriedEndpoints(pool.fallback, tried);
      if (pool.maglev === undefined || candidates.length < 2) return chooseByRendezvous(candidates, hashed);
      const tier = preferred.length > 0 ? PREFERRED : FALLBACK;
      const { slots, endpoints } = pool.maglev;
      let slot = hashed % slots.length;
      for (let passed = 0; passed < slots.length; passed += 1) {
        const candidate = endpoints[slots[slot] as number];
        if (candidate?.tier === tier && !isTried(candidate, tried)) return candidate;
        slot = slot + 1 === slots.length ? 0 : slot + 1;
      }
      return chooseByRendezvous(candidates, hashed);
    },
  };
}

const SERVICE_SEED = 0x1f83d9ab;
const HIGH_SEED = 0x5be0cd19;
const LOW_SEED = 0x243f6a88;

/**
 * Implements `sessionAffinity: ClientIP`: chooses the endpoint that the client got last, if that endpoint is not excluded and
 * the client's last connection is at most `timeoutMs` ago; otherwise by rendezvous hashing, which every proxy and worker computes
 * alike. A new endpoint therefore takes over only clients that this proxy does not remember. Affinity overrides the preferred zone.
 */
export function createClientAffinityBalancer(
  { service, listener }: Pick<Route, 'service' | 'listener'>,
  timeoutMs: number,
  { now, affinityTable }: BalancerOptions,
): Balancer {
  const port = hashText(`${service.uid}|${listener.protocol}|${listener.port}`, SERVICE_SEED);
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
  return (
    chooseByRendezvous(untriedEndpoints(pool.preferred, tried), hashed) ??
    chooseByRendezvous(untriedEndpoints(pool.fallback, tried), hashed)
  );
}
