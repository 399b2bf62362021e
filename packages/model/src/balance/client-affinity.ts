import type { Client } from '../match/client.ts';
import type { Route } from '../match/route.ts';
import type { AffinityKey } from './affinity-table.ts';
import { type Balancer, type BalancerOptions, isTried, untriedEndpoints } from './balancer.ts';
import { hashClientAddress } from './client-hash.ts';
import { type EndpointStats, EXCLUDED } from './endpoint-load.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import { hashPair, hashText } from './hash.ts';
import { chooseByRendezvous } from './rendezvous.ts';

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
