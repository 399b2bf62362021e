import type { Client, Route } from '../match/route.ts';
import type { AffinityKey } from './affinity-table.ts';
import { type Balancer, type BalancerOptions, isTried, untriedEndpoints } from './balancer.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import { type EndpointStats, EXCLUDED, FALLBACK, PREFERRED } from './endpoint-stats.ts';
import { type ClientHash, hashClientAddress, hashPair, hashText } from './hash.ts';

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

const SERVICE_SEED = 0x1f83d9ab;
const HIGH_SEED = 0x5be0cd19;
const LOW_SEED = 0x243f6a88;

/**
 * `sessionAffinity: ClientIP`: the endpoint that the client was given last while it works and the timeout has not passed
 * since the client's last connection; else by rendezvous, as every proxy computes it. So proxies and workers agree without
 * a word, and a new endpoint takes only clients that this proxy has not seen. The remembered endpoint also counts when it is
 * in another zone; weights would move clients while they change.
 */
export function createClientAffinityBalancer(
  { service, listener }: Pick<Route, 'service' | 'listener'>,
  timeoutMs: number,
  { now, affinityTable }: BalancerOptions,
): Balancer {
  const port = hashText(`${service.uid}|${listener.protocol}|${listener.port}`, SERVICE_SEED);
  const timeout = timeoutMs / 1_000;
  // One for all calls: to look something up leaves nothing behind.
  const key: AffinityKey = { high: 0, low: 0 };
  return {
    choose(pool, client, tried) {
      const at = Math.floor(now() / 1_000);
      setKey(key, client, port);
      const endpoint = affinityTable?.lookup(key, at, timeout);
      const known = endpoint === undefined ? undefined : findEndpoint(pool, endpoint);
      const chosen = known !== undefined && !isTried(known, tried) ? known : chooseByAddress(pool, client, tried);
      if (chosen !== undefined) affinityTable?.record(key, chosen.hash, at);
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
    const load = all[index] as EndpointStats;
    if (load.hash === hash) return load.tier === EXCLUDED ? undefined : load;
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
