// A proxy that is killed cannot give its share of a limit back. The controller notices that the proxy has ended, and the other proxies use
// the share, although no next proxy of the node starts.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connectClient, echoServer, eventually, type TestClient } from '@weir/testkit';
import { insideNamespace, requireProgram, startRedis } from '@weir/tools';
import { stringify } from 'yaml';
import { endpointSlice, loadBalancer, namespaceManifest, tenantPolicy } from '../src/manifests.ts';
import { startRedisFleet } from '../src/redis-load/redis-fleet.ts';

// The controller trusts no loopback address of a proxy on another host.
const ADDRESSES = ['10.252.0.1', '10.252.0.2', '10.252.0.3'] as const;
const PORT = 7_001;
const LIMIT = 9;
/** Each of the two idle proxies keeps one connection. */
const SHARE_BESIDE_TWO = LIMIT - 2;
const SHARE_BESIDE_ONE = LIMIT - 1;
/**
 * docs/fleet-limits.md says about 5 s. A controller that has just started waits 10 s more for heartbeats, and a busy machine is slower. The
 * store itself would take the share back after 60 s.
 */
const MAX_RETURN_MS = 30_000;

describe('the share of a proxy that was killed', {
  ...requireProgram('redis'),
  ...insideNamespace({ addresses: ADDRESSES }),
}, () => {
  test('returns to the other proxies some seconds later, although no proxy starts on its node', async (t) => {
    await using stack = new AsyncDisposableStack();
    const redis = stack.use(await startRedis());
    const backend = stack.use(await echoServer());
    const manifests = [
      namespaceManifest('shop', { team: 'shop' }),
      tenantPolicy('shop', { limits: { connections: LIMIT } }),
      loadBalancer('shop/web', { ports: [{ port: PORT }] }),
      endpointSlice('shop/web', ['127.0.0.1'], { ports: [{ port: backend.port }] }),
    ];
    const fleet = stack.use(
      await startRedisFleet({
        redisUrl: redis.url,
        fleet: 'killed',
        manifests: manifests.map((each) => stringify(each)).join('---\n'),
        reachableAddresses: ADDRESSES,
      }),
    );
    await fleet.waitUntilApplied();
    const [first, , last] = ADDRESSES;
    const clients = await eventually(() => openExactly(SHARE_BESIDE_TWO, last));
    await fleet.kill(2);
    const killedAt = performance.now();
    await closeAll(clients);
    const atOnce = await openClients(first);
    await closeAll(atOnce);
    assert.ok(atOnce.length <= LIMIT - SHARE_BESIDE_TWO, `${atOnce.length} connections`);
    const returned = await eventually(() => openExactly(SHARE_BESIDE_ONE, first), {
      timeoutMs: MAX_RETURN_MS,
      intervalMs: 100,
    });
    t.diagnostic(`the share was back after ${Math.round(performance.now() - killedAt)} ms`);
    await closeAll(returned);
    assert.deepEqual((await fleet.store.leases.members()).map(({ node }) => node).sort(), ['node-1', 'node-2']);
  });
});

/** Opens connections until the proxy refuses one. Closes all of them and throws if they are not `count`. */
async function openExactly(count: number, host: string): Promise<readonly TestClient[]> {
  const clients = await openClients(host);
  if (clients.length === count) return clients;
  await closeAll(clients);
  return assert.fail(`${clients.length} connections instead of ${count}`);
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

async function closeAll(clients: readonly TestClient[]): Promise<void> {
  // The proxy may have reset a connection.
  for (const client of clients) await client.close().catch(() => undefined);
}
