// Tests the path from an unmodified Service to the bytes in the usage ledger. Everything except the kubelets is real and runs in one
// network namespace.
import assert from 'node:assert/strict';
import { get } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { insideNamespace, requireProgram } from '@weir/tools';
import { ALL_ADDRESSES, NODES, nodeAddress } from '../src/addresses.ts';
import { type Fleet, startFleet } from '../src/fleet.ts';
import { type PodOptions, Pods } from '../src/pods.ts';
import { addressesIn, conditionIn, waitForStatus } from '../src/service-status.ts';
import { steadyRequests } from '../src/steady-load.ts';

const manifest = (name: string): string => fileURLToPath(new URL(`../manifests/${name}.yaml`, import.meta.url));
const ADDRESSES = NODES.map(nodeAddress);
const WEB = ADDRESSES.map((address) => `http://${address}/`);

const requirement = { ...requireProgram('redis', 'kubernetes'), ...insideNamespace({ addresses: ALL_ADDRESSES }) };

describe('a fleet of three proxies on a real API server', { ...requirement, timeout: 300_000 }, () => {
  let fleet: Fleet;
  let pods: Pods;
  /** The total traffic of the clients of the game Service. */
  const counted = {
    clients: 0,
    sent: 0,
    received: 0,
    add(client: TestClient): void {
      this.clients += 1;
      this.sent += client.sent;
      this.received += client.received;
    },
  };
  const apply = (name: string): Promise<string> => fleet.cluster.kubectl('apply', '-f', manifest(name));

  before(async () => {
    fleet = await startFleet();
    pods = new Pods(fleet.cluster);
  });
  after(async () => {
    await pods?.close();
    await fleet?.close();
  });

  test('an unmodified Service gets the addresses of the nodes and receives traffic at each address', async () => {
    await apply('shop');
    await pods.http({
      namespace: 'shop',
      name: 'web-1',
      labels: { app: 'web' },
      number: 1,
      port: 8080,
    });
    const status = await waitForStatus(fleet.cluster, 'shop/web', (now) => addressesIn(now).length === 3);
    assert.deepEqual(addressesIn(status), ADDRESSES);
    for (const ingress of status.loadBalancer?.ingress ?? []) {
      assert.equal(ingress.ipMode, 'Proxy');
      assert.deepEqual(ingress.ports, [{ port: 80, protocol: 'TCP' }]);
    }
    assert.equal(conditionIn(status, 'Accepted')?.status, 'True');
    assert.equal(conditionIn(status, 'Programmed')?.status, 'True');
    for (const url of WEB) await eventually(() => fetchOnce(url), { timeoutMs: 5000 });
  });

  test('adding and removing endpoints fails no request', async () => {
    await using requests = steadyRequests({ urls: WEB, clients: 6 });
    const pod = (number: number): PodOptions => ({
      namespace: 'shop',
      name: `web-${number}`,
      labels: { app: 'web' },
      number,
      port: 8080,
    });
    const second = await pods.http(pod(2));
    await eventually(() => assert.ok(second.server.requests > 20), { timeoutMs: 20_000 });
    const third = await pods.http(pod(3));
    await second.remove();
    await eventually(() => assert.ok(third.server.requests > 20), { timeoutMs: 20_000 });
    await requests.waitForMore(200);
    await requests.stop();
    assert.deepEqual(requests.failures, []);
  });

  test('serves TCP and UDP of one Service', async () => {
    await apply('game');
    await pods.echo({
      namespace: 'game',
      name: 'world-1',
      labels: { app: 'world' },
      number: 4,
      port: 25565,
    });
    const status = await waitForStatus(fleet.cluster, 'game/world', (now) => addressesIn(now).length === 3);
    assert.deepEqual(
      status.loadBalancer?.ingress?.[0]?.ports?.map(({ protocol, error }) => [protocol, error]),
      [
        ['TCP', undefined],
        ['UDP', undefined],
      ],
    );
  });

  test('refuses a Service over the limit at once, and serves it when another Service is deleted', async () => {
    const { kubectl } = fleet.cluster;
    await apply('limits');
    await apply('small');
    await waitForStatus(fleet.cluster, 'small/first', (now) => addressesIn(now).length === 3);
    await apply('small-second');
    const refused = await waitForStatus(
      fleet.cluster,
      'small/second',
      (now) => conditionIn(now, 'Accepted')?.status === 'False',
    );
    assert.deepEqual(conditionIn(refused, 'Accepted'), {
      ...conditionIn(refused, 'Accepted'),
      reason: 'QuotaExceeded',
      message:
        '1 of 1 load balancers of tenant "small" are in use (first); delete one or ask for a higher limit in TenantPolicy "small"',
    });
    await eventually(
      async () => assert.match(await kubectl('describe', 'service', 'second', '-n', 'small'), /QuotaExceeded.*1 of 1/),
      { timeoutMs: 10_000 },
    );
    await kubectl('delete', 'service', 'first', '-n', 'small');
    await waitForStatus(fleet.cluster, 'small/second', (now) => addressesIn(now).length === 3);
  });

  test('a Suspension disconnects its tenant on every proxy and no other tenant, until it is deleted', async () => {
    const { kubectl } = fleet.cluster;
    await using others = steadyRequests({ urls: WEB, clients: 4 });
    const victims = await Promise.all(ADDRESSES.map((host) => connectClient({ host, port: 25565 })));
    for (const victim of victims) {
      await victim.send(Buffer.from('hello'));
      await victim.take(5);
      counted.add(victim);
    }
    await apply('suspension');
    for (const victim of victims) assert.deepEqual(await victim.ended, { kind: 'error', code: 'ECONNRESET' });
    const suspended = await waitForStatus(
      fleet.cluster,
      'game/world',
      (now) => conditionIn(now, 'Suspended') !== undefined,
    );
    assert.match(conditionIn(suspended, 'Suspended')?.message ?? '', /please call us/);
    assert.deepEqual(addressesIn(suspended), ADDRESSES);
    await assertRefused(25565);

    await fleet.redis.wipe();
    await fleet.restartController();
    await fleet.restartProxy('node-1');
    await others.waitForMore(1).catch(() => undefined);
    await assertRefused(25565);

    await kubectl('delete', 'suspension', 'stop-game');
    // Counts only the successful connections, because the ledger does not contain refused connections.
    for (const host of ADDRESSES) {
      await eventually(async () => counted.add(await echoOnce(host, 25565)), { timeoutMs: 10_000 });
    }
    await others.stop();
    // Ignores failures at node-1, because its proxy was restarted.
    assert.deepEqual(
      others.failures.filter((failure) => !failure.startsWith(WEB[0] ?? '')),
      [],
    );
  });

  test('weir suspend and weir resume create and delete a Suspension', async () => {
    const suspensions = (): Promise<string> => fleet.cluster.kubectl('get', 'suspensions', '-o', 'name');
    await fleet.weir('suspend', 'game/world', '--message', 'closed for a moment');
    await eventually(() => assertRefused(25565), { timeoutMs: 10_000 });
    assert.match(await suspensions(), /^suspension\.weir\.dev\/\S+\n$/);
    const status = await waitForStatus(
      fleet.cluster,
      'game/world',
      (now) => conditionIn(now, 'Suspended') !== undefined,
    );
    assert.match(conditionIn(status, 'Suspended')?.message ?? '', /^closed for a moment \(suspended /);
    await fleet.weir('resume', 'game/world');
    assert.equal(await suspensions(), '');
    for (const host of ADDRESSES) {
      await eventually(async () => counted.add(await echoOnce(host, 25565)), { timeoutMs: 10_000 });
    }
  });

  test('restarts of controller and Redis fail no request', async () => {
    await using requests = steadyRequests({ urls: WEB, clients: 6 });
    await requests.waitForMore(50);
    await fleet.redis.restart();
    await requests.waitForMore(100);
    await fleet.restartController();
    await requests.waitForMore(100);
    await fleet.redis.wipe();
    await requests.waitForMore(100);
    const status = await waitForStatus(fleet.cluster, 'shop/web', (now) => addressesIn(now).length === 3);
    assert.equal(conditionIn(status, 'Programmed')?.status, 'True');
    await requests.stop();
    assert.deepEqual(requests.failures, []);
  });

  test('the ledger equals the traffic counted by the clients exactly', async () => {
    await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        await using client = await connectClient({ host: ADDRESSES[i % 3] ?? '', port: 25565 });
        await client.send(Buffer.alloc(1000 + 37 * i, i));
        await client.end();
        assert.deepEqual(await client.ended, { kind: 'end' });
        counted.add(client);
      }),
    );
    await eventually(
      async () => {
        const { items } = JSON.parse(await fleet.weir('usage', 'game', '-o', 'json')) as {
          items: { receivedBytes: number; sentBytes: number; connections: number }[];
        };
        const { receivedBytes, sentBytes, connections } = items[0] ?? {};
        assert.deepEqual([receivedBytes, sentBytes, connections], [counted.sent, counted.received, counted.clients]);
      },
      { timeoutMs: 15_000, intervalMs: 250 },
    );
  });

  test('cleans up a deleted Service and a Service with another type', async () => {
    const { kubectl } = fleet.cluster;
    await kubectl('patch', 'service', 'web', '-n', 'shop', '-p', '{"spec":{"type":"ClusterIP"}}');
    const status = await waitForStatus(
      fleet.cluster,
      'shop/web',
      (now) => (now.conditions ?? []).length === 0 && addressesIn(now).length === 0,
    );
    assert.deepEqual(status.loadBalancer ?? {}, {});
    await eventually(() => assertRefused(80), { timeoutMs: 10_000 });
    await kubectl('delete', 'service', 'world', '-n', 'game');
    await eventually(() => assertRefused(25565), { timeoutMs: 10_000 });
    const { items } = JSON.parse(await fleet.weir('get', 'services', '-o', 'json')) as { items: { name: string }[] };
    assert.deepEqual(
      items.map(({ name }) => name),
      ['second'],
    );
  });
});

async function assertRefused(port: number): Promise<void> {
  for (const host of ADDRESSES) await assert.rejects(connectClient({ host, port }), { code: 'ECONNREFUSED' });
}

async function echoOnce(host: string, port: number): Promise<TestClient> {
  await using client = await connectClient({ host, port });
  await client.send(Buffer.from('again'));
  assert.equal((await client.take(5)).toString(), 'again');
  await client.end();
  assert.deepEqual(await client.ended, { kind: 'end' });
  return client;
}

function fetchOnce(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      response.resume();
      if (response.statusCode === 200) resolve();
      else reject(new Error(`status ${response.statusCode}`));
    }).once('error', reject);
  });
}
