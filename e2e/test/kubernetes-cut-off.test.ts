// Cut-offs while the controller, the API server or Redis is away, and across restarts.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connectClient, eventually, freePort, startTcpRelay, type TcpRelay, type TestClient } from '@weir/testkit';
import { insideNamespace, requireProgram } from '@weir/tools';
import { ALL_ADDRESSES, NODES, nodeAddress } from '../src/addresses.ts';
import { type Fleet, startFleet } from '../src/fleet.ts';
import { Pods } from '../src/pods.ts';
import { addressesIn, waitForStatus } from '../src/service-status.ts';
import { steadyRequests } from '../src/steady-load.ts';

const manifest = (name: string): string => fileURLToPath(new URL(`../manifests/${name}.yaml`, import.meta.url));
const ADDRESSES = NODES.map(nodeAddress);
const WEB = ADDRESSES.map((address) => `http://${address}/`);
const GAME_PORT = 25565;

const requirement = { ...requireProgram('redis', 'kubernetes'), ...insideNamespace({ addresses: ALL_ADDRESSES }) };

describe('a cut-off', { ...requirement, timeout: 600_000 }, () => {
  let fleet: Fleet;
  let pods: Pods;
  /** The path from `node-3` to Redis. */
  let redisRelay: TcpRelay;
  before(async () => {
    const port = await freePort();
    redisRelay = await startTcpRelay(port);
    fleet = await startFleet({
      redis: { port },
      proxySettings: (node) => (node === 'node-3' ? { WEIR_REDIS_URL: `redis://127.0.0.1:${redisRelay.port}` } : {}),
    });
    pods = new Pods(fleet.cluster);
    for (const name of ['shop', 'game']) await fleet.cluster.kubectl('apply', '-f', manifest(name));
    await pods.http({ namespace: 'shop', name: 'web-1', labels: { app: 'web' }, number: 1, port: 8080 });
    await pods.echo({ namespace: 'game', name: 'world-1', labels: { app: 'world' }, number: 4, port: GAME_PORT });
    for (const path of ['shop/web', 'game/world'])
      await waitForStatus(fleet.cluster, path, (now) => addressesIn(now).length === 3);
    await isServed();
  });
  after(async () => {
    await pods?.close();
    await fleet?.close();
    await redisRelay?.[Symbol.asyncDispose]();
  });

  test('takes effect on every proxy without the controller', async () => {
    await fleet.stopController();
    await disconnects(() => fleet.weir('suspend', 'game', '--message', 'Stop.'));
    await fleet.weir('resume', 'game');
    await isServed();
    await fleet.startController();
  });

  test('takes effect without the API server, becomes a Suspension later, and its audit trail has it once', async () => {
    await fleet.cluster.stopApiServer({ signal: 'SIGKILL' });
    await disconnects(() => fleet.weir('suspend', 'game', '--message', 'Stop.'));
    await fleet.cluster.startApiServer();
    await eventually(
      async () => assert.match(await fleet.cluster.kubectl('get', 'suspensions', '-o', 'name'), /tenant\.game\n$/),
      { timeoutMs: 60_000 },
    );
    await eventually(
      async () => {
        const items = await suspensions();
        assert.deepEqual(
          items.map(({ origin }) => origin.kind),
          ['kubernetes'],
        );
      },
      { timeoutMs: 60_000 },
    );
    await fleet.weir('resume', 'game');
    await isServed();
    const trail = await fleet.weir('get', 'suspensions', '--past');
    assert.deepEqual(trail.match(/Suspended|Released \(\w+\)/g), [
      'Suspended',
      'Released (resumed)',
      'Suspended',
      'Released (resumed)',
    ]);
  });

  test('made with kubectl takes effect on every proxy, and disturbs no other tenant', async () => {
    await using others = steadyRequests({ urls: WEB, clients: 4 });
    await disconnects(() => fleet.cluster.kubectl('create', '-f', manifest('suspension')));
    await others.waitForMore(50);
    await others.stop();
    assert.deepEqual(others.failures, []);
    await fleet.cluster.kubectl('delete', 'suspension', 'stop-game');
    await isServed();
  });

  test('made with kubectl while Redis is away reaches the proxies when Redis is back', async () => {
    await fleet.redis.stop();
    await fleet.cluster.kubectl('create', '-f', manifest('suspension'));
    await isServed();
    await disconnects(() => fleet.redis.start());
    await fleet.cluster.kubectl('delete', 'suspension', 'stop-game');
    await isServed();
  });

  test('reaches a proxy without Redis when Redis is back for this proxy', async () => {
    const [, , last = ''] = ADDRESSES;
    await using client = await connectClient({ host: last, port: GAME_PORT });
    redisRelay.cut();
    await fleet.weir('suspend', 'game', '--message', 'Stop.');
    for (const host of ADDRESSES.slice(0, 2))
      await eventually(() => assert.rejects(connectClient({ host, port: GAME_PORT }), { code: 'ECONNREFUSED' }));
    await echo(client);
    await redisRelay.restore();
    assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    await eventually(assertRefused, { timeoutMs: 10_000 });
    await fleet.weir('resume', 'game');
    await isServed();
  });

  test('holds while all processes are killed and started again', async () => {
    await disconnects(() => fleet.weir('suspend', 'game', '--message', 'Stop.'));
    let isRestarted = false;
    const attempts = ADDRESSES.map(async (host) => {
      for (let number = 1; ; number++) {
        assert.equal(await isEchoed(host), false, `${host} served the tenant`);
        if (isRestarted) return number;
        // The pause leaves processor time to the processes that start.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    const kill = { signal: 'SIGKILL' } as const;
    await Promise.all([
      ...NODES.map((node) => fleet.killProxy(node)),
      fleet.killController(),
      fleet.redis.stop(kill),
      fleet.cluster.stopApiServer(kill),
    ]);
    for (const node of NODES) await fleet.startProxy(node);
    await eventually(() => Promise.all(WEB.map((url) => fetch(url))), { timeoutMs: 60_000 });
    await fleet.redis.start();
    await fleet.cluster.startApiServer();
    await fleet.startController();
    await eventually(async () => assert.equal((await suspensions()).length, 1), { timeoutMs: 60_000 });
    isRestarted = true;
    for (const number of await Promise.all(attempts)) assert.ok(number > 0);
    await fleet.weir('resume', 'game');
    await isServed();
  });

  test('takes effect with --local without controller, API server and Redis, and disturbs no other tenant', async () => {
    await using others = steadyRequests({ urls: WEB, clients: 4 });
    await fleet.stopController();
    await fleet.redis.stop();
    await fleet.cluster.stopApiServer({ signal: 'SIGKILL' });
    await disconnects(async () => {
      for (const node of NODES) {
        const said = await fleet.weirOnNode(node, 'suspend', '--namespace', 'game', '--message', 'Stop.');
        assert.match(said, new RegExp(`^namespace game is suspended on node ${node} only, until resumed`));
      }
    });
    await others.waitForMore(50);
    await others.stop();
    assert.deepEqual(others.failures, []);
    await fleet.killProxy('node-1');
    await fleet.startProxy('node-1');
    await fleet.redis.start();
    await fleet.cluster.startApiServer();
    await fleet.startController();
    await eventually(async () => assert.equal((await suspensions()).length, 3), { timeoutMs: 30_000 });
    await assertRefused();
    for (const node of NODES) await fleet.weirOnNode(node, 'resume', '--namespace', 'game');
    await isServed();
  });

  /** Opens a connection at each node, and checks that `cutOff` resets all connections and that new connections are refused. */
  async function disconnects(cutOff: () => Promise<unknown>): Promise<void> {
    const victims = await Promise.all(ADDRESSES.map((host) => connectClient({ host, port: GAME_PORT })));
    for (const victim of victims) await echo(victim);
    await cutOff();
    for (const victim of victims) assert.deepEqual(await victim.ended, { kind: 'error', code: 'ECONNRESET' });
    await eventually(assertRefused, { timeoutMs: 10_000 });
  }

  async function suspensions(): Promise<readonly { readonly origin: { readonly kind: string } }[]> {
    return JSON.parse(await fleet.weir('get', 'suspensions', '-o', 'json')).items;
  }
});

async function isServed(): Promise<void> {
  for (const host of ADDRESSES) {
    await eventually(
      async () => {
        await using client = await connectClient({ host, port: GAME_PORT });
        await echo(client);
      },
      { timeoutMs: 30_000 },
    );
  }
}

/** Whether a new connection echoes. The proxy may not run, refuse, or accept and close the connection. */
async function isEchoed(host: string): Promise<boolean> {
  try {
    await using client = await connectClient({ host, port: GAME_PORT });
    await echo(client);
    return true;
  } catch {
    return false;
  }
}

async function echo(client: TestClient): Promise<void> {
  await client.send(Buffer.from('hello'));
  assert.equal((await client.take(5)).toString(), 'hello');
}

async function assertRefused(): Promise<void> {
  for (const host of ADDRESSES)
    await assert.rejects(connectClient({ host, port: GAME_PORT }), { code: 'ECONNREFUSED' });
}
