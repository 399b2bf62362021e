// Tests proxies as processes with a real Redis: a proxy that is killed has no time to give its share back.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentLogger } from '@weir/runtime';
import { openRedisStore, TablePublisher } from '@weir/store';
import { connectClient, echoServer, eventually, spawnProcess, type TestClient } from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import { loopbackAddress, PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { tableFor } from '../fixtures/tables.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const LIMIT = 6;

describe('the share of a proxy that was killed', requireProgram('redis'), () => {
  test('is not used by other proxies until the node’s next proxy starts', async () => {
    await using stack = new AsyncDisposableStack();
    const redis = stack.use(await startRedis());
    const fleet = `test-${randomUUID()}`;
    const addresses = { a: loopbackAddress(), b: loopbackAddress() };
    const store = await openRedisStore({ url: redis.url, fleet, log: silentLogger() });
    stack.defer(() => store.close());
    const backend = stack.use(await echoServer());
    await store.usage.seed({ months: [], bases: [] });
    await store.suspensions.markComplete();
    const publisher = new TablePublisher({ store: store.table });
    await publisher.becomeLeader();
    const services = [webService([endpointOf(backend)])];
    await publisher.publish(tableFor(addresses, services, { shop: { connections: LIMIT } }));
    const start = (node: string) => startProcess(fleet, node, redis.url);
    const killed = await start('a');
    stack.use(await start('b'));
    const clientsOfA = await eventually(async () => {
      const clients = await openClients(addresses.a);
      if (clients.length === LIMIT - 1) return clients;
      await closeAll(clients);
      return assert.fail(`${clients.length} clients`);
    });
    await killed.stop('SIGKILL');
    await closeAll(clientsOfA);
    const openAtB = async (): Promise<number> => {
      const clients = await openClients(addresses.b);
      await closeAll(clients);
      return clients.length;
    };
    assert.ok((await openAtB()) <= 1);
    stack.use(await start('a'));
    await eventually(async () => assert.equal(await openAtB(), LIMIT - 1));
  });
});

function startProcess(fleet: string, node: string, redisUrl: string) {
  return spawnProcess({
    name: `weir-proxy ${node}`,
    command: process.execPath,
    args: ['--conditions=source', MAIN],
    readyWhen: /the first routing table is in effect/,
    mayExit: true,
    env: {
      ...process.env,
      WEIR_FLEET: fleet,
      WEIR_NODE: node,
      WEIR_WORKERS: '1',
      WEIR_ADMIN: 'off',
      WEIR_REDIS_URL: redisUrl,
    },
  });
}

async function closeAll(clients: readonly TestClient[]): Promise<void> {
  // The proxy may have reset a connection.
  for (const client of clients) await client.close().catch(() => undefined);
}

/** Opens connections until the proxy refuses one. */
async function openClients(host: string): Promise<TestClient[]> {
  const clients: TestClient[] = [];
  try {
    for (;;) {
      const client = await connectClient({ host, port: PORT });
      await client.send('x');
      await client.take(1);
      clients.push(client);
    }
  } catch {
    return clients;
  }
}
