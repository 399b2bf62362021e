// Tests the proxy as a process with a real Redis.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { monthOf } from '@weir/model';
import { silentLogger } from '@weir/runtime';
import { openRedisStore, TablePublisher } from '@weir/store';
import {
  connectClient,
  echoServer,
  eventually,
  freePort,
  type SpawnedProcess,
  spawnProcess,
  temporaryDirectory,
} from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import { kernelWarnings } from '../../src/status/host-warnings.ts';
import { loopbackAddress, PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { tableFor } from '../fixtures/tables.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

describe('weir-proxy with Redis', requireProgram('redis'), () => {
  test('serves the table in Redis, and drains on SIGTERM without loss, with exit code 0', async () => {
    await using redis = await startRedis();
    await using state = temporaryDirectory('proxy');
    await using backend = await echoServer();
    const fleet = `test-${randomUUID()}`;
    const address = loopbackAddress();
    const store = await openRedisStore({ url: redis.url, fleet, log: silentLogger() });
    await store.usage.seed({ months: [], bases: [] });
    await store.suspensions.markComplete();
    const publisher = new TablePublisher({ store: store.table });
    await publisher.becomeLeader();
    await publisher.publish(tableFor({ n1: address }, [webService([endpointOf(backend)])]));
    await using proxy = await spawnProxy({ WEIR_REDIS_URL: redis.url, WEIR_FLEET: fleet, WEIR_STATE: state.path });
    await eventually(async () => assert.equal((await store.heartbeats.list())[0]?.listeners[0]?.listening, true));
    const [{ sentAt = 0, hostAdvice = undefined, transport = undefined } = {}] = await store.heartbeats.list();
    assert.ok(Math.abs(Date.now() - sentAt) < 3_500, 'a heartbeat has the time at which it was sent');
    assert.deepEqual(hostAdvice, await kernelWarnings('syscalls'));
    assert.equal(transport, 'syscalls');
    await proxy.waitForOutput(/"transport":"syscalls".*the first routing table is in effect/);
    assert.doesNotMatch(proxy.output(), /no state directory/);
    await using client = await connectClient({ host: address, port: PORT });
    await client.send('hello');
    await client.take(5);
    proxy.signal('SIGTERM');
    await eventually(async () => assert.equal((await store.heartbeats.list())[0]?.draining, true));
    await client.send('still');
    await client.take(5);
    await client.end();
    await client.ended;
    assert.deepEqual(await proxy.exited, { code: 0, signal: null });
    const [row] = await store.usage.rows(monthOf(Date.now()));
    assert.deepEqual(row?.counters, { receivedBytes: 10, sentBytes: 10, connections: 1, requests: 0 });
    assert.deepEqual(await store.heartbeats.list(), []);
    await store.close();
  });

  test('resets connections that are open after WEIR_DRAIN, and exits with code 0', async () => {
    await using redis = await startRedis();
    await using backend = await echoServer();
    const [fleet, address] = [`test-${randomUUID()}`, loopbackAddress()];
    const store = await openRedisStore({ url: redis.url, fleet, log: silentLogger() });
    await store.suspensions.markComplete();
    const publisher = new TablePublisher({ store: store.table });
    await publisher.becomeLeader();
    await publisher.publish(tableFor({ n1: address }, [webService([endpointOf(backend)])]));
    await using proxy = await spawnProxy({ WEIR_REDIS_URL: redis.url, WEIR_FLEET: fleet, WEIR_DRAIN: '100ms' });
    await proxy.waitForOutput(/the first routing table is in effect/);
    assert.match(proxy.output(), /"advice":"set WEIR_STATE .*this proxy has no state directory/);
    await using client = await connectClient({ host: address, port: PORT });
    await client.send('hello');
    await client.take(5);
    proxy.signal('SIGTERM');
    assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    assert.deepEqual(await proxy.exited, { code: 0, signal: null });
    await store.close();
  });

  test('exits with code 2 and one line on a wrong password', async () => {
    await using redis = await startRedis({ password: 'right' });
    const url = new URL(redis.url);
    url.password = 'wrong';
    await using proxy = await spawnProxy({ WEIR_REDIS_URL: url.href });
    assert.deepEqual(await proxy.exited, { code: 2, signal: null });
    assert.match(proxy.output(), /^weir-proxy: .*password.*\n$/i);
  });
});

test('reports all invalid settings at once, with exit code 2', async () => {
  await using proxy = await spawnProxy({
    WEIR_REDIS_URL: 'http://nowhere',
    WEIR_WORKERS: '0',
    WEIR_NODE: '..',
    WEIR_ADDRESSES: '192.0.2.1,999.1.1.1',
    WEIR_TRUST_PROXY_PROTOCOL: '192.0.2.1',
    WEIR_TRUST_FORWARDED: 'proxy.example',
    WEIR_WRITE_FORWARDED: 'always',
  });
  assert.deepEqual(await proxy.exited, { code: 2, signal: null });
  assert.match(proxy.output(), /WEIR_REDIS_URL/);
  assert.match(proxy.output(), /WEIR_NODE is "\.\."/);
  assert.match(proxy.output(), /WEIR_ADDRESSES is .*an IP address/);
  assert.match(proxy.output(), /WEIR_TRUST_PROXY_PROTOCOL is .*a network such as 192\.0\.2\.0\/24/);
  assert.match(proxy.output(), /WEIR_TRUST_FORWARDED is .*a network such as 192\.0\.2\.0\/24/);
  assert.match(proxy.output(), /WEIR_WRITE_FORWARDED is "always"/);
  assert.match(proxy.output(), /WEIR_WORKERS is "0"; use an integer from 1 to 256/);
});

test('waits while Redis is unreachable, and ends at once on a second SIGTERM', async () => {
  const url = `redis://127.0.0.1:${await freePort()}`;
  await using proxy = await spawnProxy({ WEIR_REDIS_URL: url, WEIR_FLEET: `test-${randomUUID()}` });
  await proxy.waitForOutput(/failed to read from the store/);
  proxy.signal('SIGTERM');
  proxy.signal('SIGTERM');
  const { code } = await proxy.exited;
  assert.ok(code === 143 || code === 0, `exit code ${code}`);
});

function spawnProxy(env: Record<string, string>): Promise<SpawnedProcess> {
  return spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', MAIN],
    env: { PATH: process.env.PATH ?? '', WEIR_NODE: 'n1', WEIR_WORKERS: '1', WEIR_ADMIN: '127.0.0.1:0', ...env },
    name: 'weir-proxy',
    mayExit: true,
  });
}
