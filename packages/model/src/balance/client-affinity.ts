import type { Client } from '../match/client.ts';
import type { Route } from '../match/route.ts';
import type { AffinityKey } from './affinity-table.ts';
import { type Balancer, type BalancerTools, isTried, untried } from './balancer.ts';
import { hashAddress } from './client-hash.ts';
import { type EndpointLoad, UNUSED } from './endpoint-load.ts';
import type { EndpointPool } from './endpoint-pool.ts';
import { hashPair, hashText } from './hash.ts';
import { rendezvous } from './rendezvous.ts';

const SERVICE_SEED = 0x1f83d9ab;
const HIGH_SEED = 0x5be0cd19;
const LOW_SEED = 0x243f6a88;

/**
 * `sessionAffinity: ClientIP`: the endpoint that the client was given last while it works and the timeout has not passed
 * since the client's last connection; else by rendezvous, as every proxy computes it. So proxies and workers agree without
 * a word, and a new endpoint takes only clients that this proxy has not seen. The remembered endpoint also counts when it is
 * in another zone; weights would move clients while they change.
 */
export function createClientAffinity(
  { service, listener }: Pick<Route, 'service' | 'listener'>,
  timeoutMs: number,
  { now, memory }: BalancerTools,
): Balancer {
  const port = hashText(`${service.uid}|${listener.protocol}|${listener.port}`, SERVICE_SEED);
  const timeout = timeoutMs / 1_000;
  // One for all calls: to look something up leaves nothing behind.
  const key: AffinityKey = { high: 0, low: 0 };
  return {
    choose(pool, client, tried) {
      const at = Math.floor(now() / 1_000);
      setKey(key, client, port);
      const endpoint = memory?.recall(key, at, timeout);
      const known = endpoint === undefined ? undefined : loadOf(pool, endpoint);
      const chosen = known !== undefined && !isTried(known, tried) ? known : compute(pool, client, tried);
      if (chosen !== undefined) memory?.remember(key, chosen.hash, at);
      return chosen;
    },
  };
}

function setKey(key: AffinityKey, { address }: Client, port: number): void {
  key.high = hashPair(port, hashText(address, HIGH_SEED));
  key.low = hashPair(hashText(address, LOW_SEED), port);
}

function loadOf({ all }: EndpointPool, hash: number): EndpointLoad | undefined {
  for (let index = 0; index < all.length; index += 1) {
    const load = all[index] as EndpointLoad;
    if (load.hash === hash) return load.rank === UNUSED ? undefined : load;
  }
  return undefined;
}

function compute(pool: EndpointPool, client: Client, tried: readonly EndpointLoad[]): EndpointLoad | undefined {
  const hashed = hashAddress(client);
  return rendezvous(untried(pool.first, tried), hashed) ?? rendezvous(untried(pool.second, tried), hashed);
}
