// The tenant that is limited and cut off, again and again, while versions change around it.
import assert from 'node:assert/strict';
import { connectRaw, eventually, type RawClient } from '@weir/testkit';
import { NODES, nodeAddress } from '../addresses.ts';
import { answers, refuses, refusesNow } from '../clients.ts';
import type { Fleet } from '../fleet.ts';
import { publishedWhen } from '../kubernetes-objects.ts';
import { loadBalancer, namespace, tenantPolicy } from '../manifests.ts';
import type { Pods } from '../pods.ts';
import { type Account, isOnLedger, sum } from './account.ts';

const ADDRESSES = NODES.map(nodeAddress);
const PORT = 25565;
const NEWS_PORT = 3002;
/** Connections on each proxy. */
const LIMIT = 2;
const SOON = { timeoutMs: 30_000, intervalMs: 100 };

export interface Game {
  /** What controllers, proxies, console and `weir` do together arrives at each proxy: a change, the limit, a cut-off; and the ledger is right. */
  isPlayed(weir: (...args: string[]) => Promise<string>): Promise<void>;
}

export async function openGame(fleet: Fleet, pods: Pods): Promise<Game> {
  await fleet.cluster.apply(
    tenantPolicy('game', { limits: { connections: LIMIT } }),
    namespace('game', { team: 'game' }),
    loadBalancer('game/world', { ports: [{ port: PORT, targetPort: 'main' }] }),
    namespace('news'),
  );
  await pods.echo({ namespace: 'game', name: 'world-1', labels: { app: 'world' }, number: 2, port: 8080 });
  await pods.echo({ namespace: 'news', name: 'web-1', labels: { app: 'web' }, number: 3, port: 8080 });
  await publishedWhen(fleet.cluster, 'game/world', ADDRESSES);
  let counted: Account = { sent: 0, received: 0, connections: 0 };
  const count = ({ sent, received }: RawClient): void => {
    counted = sum([counted, { sent, received, connections: 1 }]);
  };

  /** As many as may be, through each proxy; one more is reset. */
  const full = async (): Promise<readonly RawClient[]> => {
    const clients: RawClient[] = [];
    for (const host of ADDRESSES) {
      for (let place = 0; place < LIMIT; place += 1) clients.push(await eventually(() => connected(host, PORT), SOON));
      await assert.rejects(connected(host, PORT), /ECONNRESET/, `one more than ${LIMIT} at ${host}`);
    }
    return clients;
  };

  return {
    async isPlayed(weir) {
      await changeArrives(fleet);
      const players = await full();
      await weir('suspend', 'game', '--message', 'a break');
      for (const player of players) assert.deepEqual(await player.ended, { kind: 'error', code: 'ECONNRESET' });
      players.forEach(count);
      await refusesNow(ADDRESSES, PORT);
      await weir('resume', 'game');
      for (const host of ADDRESSES) count(await eventually(() => met(host, PORT), SOON));
      await isOnLedger(fleet, 'game', counted);
    },
  };
}

/** A new Service is served everywhere, and is gone when it is deleted. It is another tenant's: whoever looks whether a port is closed counts. */
async function changeArrives(fleet: Fleet): Promise<void> {
  await fleet.cluster.apply(loadBalancer('news/web', { ports: [{ port: NEWS_PORT, targetPort: 'main' }] }));
  await publishedWhen(fleet.cluster, 'news/web', ADDRESSES);
  await answers(ADDRESSES, NEWS_PORT);
  await fleet.cluster.kubectl('delete', 'service', 'web', '-n', 'news');
  await refuses(ADDRESSES, NEWS_PORT);
}

/** Connects, is answered, and ends. */
async function met(host: string, port: number): Promise<RawClient> {
  await using client = await connected(host, port);
  await client.end();
  assert.deepEqual(await client.ended, { kind: 'end' });
  return client;
}

async function connected(host: string, port: number): Promise<RawClient> {
  const client = await connectRaw({ host, port });
  try {
    await client.send('hello');
    assert.equal(String(await client.take(5)), 'hello');
    return client;
  } catch (error) {
    await client.close();
    throw error;
  }
}
