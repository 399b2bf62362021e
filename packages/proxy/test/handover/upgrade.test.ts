// Proxies as processes, each taking over from the one before under a steady load of new connections.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { monthOf } from '@weir/model';
import { silentLogger } from '@weir/runtime';
import { openRedisStore, TablePublisher } from '@weir/store';
import {
  echoServer,
  eventually,
  insideNamespace,
  requireProgram,
  type SpawnedProcess,
  spawnProcess,
  startRedis,
} from '@weir/testkit';
import { PORT } from '../fixtures/ports.ts';
import { endpointOf, web } from '../fixtures/serving.ts';
import { steadyLoad } from '../fixtures/steady-load.ts';
import { tableFor } from '../fixtures/tables.ts';

const ADDRESS = '10.240.0.1';
const namespace = insideNamespace({ addresses: [ADDRESS] });
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const HAND_OVERS = 3;
const PER_SECOND = 250;

const needs = namespace.skip ? namespace : requireProgram('redis');
describe('an upgrade under load', needs, () => {
  test('where the kernel moves waiting connections, none is refused and none is reset', async (t) => {
    await upgrade(t, { migrates: 1, allowed: [] });
  });

  test('where it does not, none is refused; resets are told', async (t) => {
    await upgrade(t, { migrates: 0, allowed: ['ECONNRESET'] });
  });
});

async function upgrade(t: TestContext, { migrates, allowed }: { migrates: 0 | 1; allowed: string[] }): Promise<void> {
  writeFileSync('/proc/sys/net/ipv4/tcp_migrate_req', String(migrates));
  await using redis = await startRedis();
  await using backend = await echoServer();
  const fleet = `test-${randomUUID()}`;
  const store = await openRedisStore({ url: redis.url, fleet, log: silentLogger() });
  await store.usage.seed({ months: [], bases: [] });
  await store.cutoffs.complete();
  const publisher = new TablePublisher({ store: store.table });
  await publisher.lead();
  await publisher.publish(tableFor({ n1: ADDRESS }, [web([endpointOf(backend)])]));
  await using proxies = new AsyncDisposableStack();
  const start = async (): Promise<SpawnedProcess> =>
    proxies.use(await spawnProxy({ WEIR_REDIS_URL: redis.url, WEIR_FLEET: fleet }));

  let serving = await start();
  await eventually(async () => assert.equal((await store.heartbeats.list())[0]?.listeners[0]?.listening, true));
  const stop = new AbortController();
  const load = steadyLoad({ host: ADDRESS, port: PORT }, { perSecond: PER_SECOND, signal: stop.signal });
  try {
    for (let count = 0; count < HAND_OVERS; count += 1) {
      const next = await start();
      await next.shows(/this proxy serves its node now/);
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
    `tcp_migrate_req=${migrates}: ${completed} connections, ${HAND_OVERS} hand-overs, ${JSON.stringify(failed)}`,
  );
  const others = Object.entries(failed).filter(([code]) => !allowed.includes(code));
  assert.deepEqual(others, []);
  const [row] = await store.usage.rows(monthOf(Date.now()));
  assert.equal(row?.counters.connections, completed);
  assert.equal(row?.counters.receivedBytes, 4 * completed);
  await store.close();
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
