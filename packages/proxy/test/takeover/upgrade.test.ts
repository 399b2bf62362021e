// Tests proxy processes that take over from one another under a steady load of new connections.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { monthOf } from '@weir/model';
import { silentLogger } from '@weir/runtime';
import { openRedisStore, type Store, TablePublisher } from '@weir/store';
import {
  connectClient,
  echoServer,
  eventually,
  type SpawnedProcess,
  spawnProcess,
  type TestClient,
} from '@weir/testkit';
import { insideNamespace, requireProgram, startRedis } from '@weir/tools';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { steadyLoad } from '../fixtures/steady-load.ts';
import { tableFor } from '../fixtures/tables.ts';

const ADDRESS = '10.240.0.1';
const namespace = insideNamespace({ addresses: [ADDRESS] });
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const TAKEOVERS = 3;
const PER_SECOND = 250;
/** A long timeout, because the machine may be busy with other tests. */
const BUSY = { timeoutMs: 40_000 };
const SERVES = /this proxy now serves its node/;

const needs = namespace.skip ? namespace : requireProgram('redis');
describe('an upgrade under load', needs, () => {
  test('refuses and resets no connection if the kernel migrates waiting connections', async (t) => {
    await upgrade(t, { migrates: 1, allowed: [] });
  });

  test('refuses no connection if the kernel does not migrate waiting connections', async (t) => {
    await upgrade(t, { migrates: 0, allowed: ['ECONNRESET'] });
  });

  test('the predecessor takes the node back, with its connections, when its successor is killed', async () => {
    await using host = await prepareHost();
    const older = await host.start();
    await host.listens();
    await using lasting = await connectClient({ host: ADDRESS, port: PORT });
    await echo(lasting);
    for (let round = 0; round < 2; round += 1) {
      const newer = await host.start();
      await newer.waitForOutput(SERVES, BUSY);
      newer.signal('SIGKILL');
      await newer.exited;
      await eventually(async () => {
        await using client = await connectClient({ host: ADDRESS, port: PORT });
        await echo(client);
      });
    }
    await echo(lasting);
    await lasting.end();
    assert.deepEqual(await lasting.ended, { kind: 'end' });
    older.signal('SIGTERM');
    assert.deepEqual(await older.exited, { code: 0, signal: null });
  });

  test('a waiting proxy takes over when the serving proxy is killed, at any moment', async () => {
    await using host = await prepareHost();
    let serving = await host.start();
    await host.listens();
    for (const ready of [/has not handed over the node/, /this proxy now serves its node|started/]) {
      const next = await host.start();
      await next.waitForOutput(ready, BUSY);
      serving.signal('SIGKILL');
      await serving.exited;
      await next.waitForOutput(SERVES, BUSY);
      await eventually(async () => {
        await using client = await connectClient({ host: ADDRESS, port: PORT });
        await echo(client);
      });
      serving = next;
    }
  });
});

async function upgrade(t: TestContext, { migrates, allowed }: { migrates: 0 | 1; allowed: string[] }): Promise<void> {
  writeFileSync('/proc/sys/net/ipv4/tcp_migrate_req', String(migrates));
  await using host = await prepareHost();
  let serving = await host.start();
  await host.listens();
  const stop = new AbortController();
  const load = steadyLoad({ host: ADDRESS, port: PORT }, { perSecond: PER_SECOND, signal: stop.signal });
  try {
    for (let count = 0; count < TAKEOVERS; count += 1) {
      const next = await host.start();
      await next.waitForOutput(SERVES, BUSY);
      serving.signal('SIGTERM');
      assert.deepEqual(await serving.exited, { code: 0, signal: null }, serving.output());
      serving = next;
    }
  } finally {
    stop.abort();
  }
  const { completed, failed } = await load;
  await serving.stop();
  t.diagnostic(
    `tcp_migrate_req=${migrates}: ${completed} connections, ${TAKEOVERS} takeovers, ${JSON.stringify(failed)}`,
  );
  const unexpected = Object.entries(failed).filter(([code]) => !allowed.includes(code));
  assert.deepEqual(unexpected, []);
  const [row] = await host.store.usage.rows(monthOf(Date.now()));
  assert.equal(row?.counters.connections, completed);
  assert.equal(row?.counters.receivedBytes, 4 * completed);
}

interface Host extends AsyncDisposable {
  readonly store: Store;
  start(): Promise<SpawnedProcess>;
  /** Resolves when a proxy listens. */
  listens(): Promise<void>;
}

/** Starts Redis and an endpoint, and publishes a table. The test starts the proxies. */
async function prepareHost(): Promise<Host> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const backend = stack.use(await echoServer());
  const fleet = `test-${randomUUID()}`;
  const store = await openRedisStore({ url: redis.url, fleet, log: silentLogger() });
  stack.defer(() => store.close());
  await store.usage.seed({ months: [], bases: [] });
  await store.suspensions.markComplete();
  const publisher = new TablePublisher({ store: store.table });
  await publisher.becomeLeader();
  await publisher.publish(tableFor({ n1: ADDRESS }, [webService([endpointOf(backend)])]));
  const proxies = stack.use(new AsyncDisposableStack());
  const all = stack.move();
  return {
    store,
    start: async () => proxies.use(await spawnProxy({ WEIR_REDIS_URL: redis.url, WEIR_FLEET: fleet })),
    listens: () =>
      eventually(async () => assert.equal((await store.heartbeats.list())[0]?.listeners[0]?.listening, true)),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function echo(client: TestClient): Promise<void> {
  await client.send('echo');
  await client.take(4);
}

function spawnProxy(env: Record<string, string>): Promise<SpawnedProcess> {
  return spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', MAIN],
    env: { PATH: process.env.PATH ?? '', WEIR_NODE: 'n1', WEIR_WORKERS: '2', WEIR_ADMIN: 'off', ...env },
    name: 'weir-proxy',
    mayExit: true,
  });
}
