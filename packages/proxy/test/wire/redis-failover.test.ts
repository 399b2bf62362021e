// Tests the proxy as a process with a Redis whose primary fails.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { monthOf } from '@weir/model';
import { Secret, silentLogger } from '@weir/runtime';
import { openRedisStore, TablePublisher } from '@weir/store';
import {
  connectClient,
  echoServer,
  eventually,
  makeCertificate,
  spawnProcess,
  temporaryDirectory,
} from '@weir/testkit';
import { requireProgram, startRedisSentinel } from '@weir/tools';
import { loopbackAddress, PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { tableFor } from '../fixtures/tables.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

describe('weir-proxy with Redis behind sentinels, by TLS', requireProgram('redis'), () => {
  test('after a failover clients notice nothing, all bytes are counted once, and changes arrive from the new primary', async () => {
    const certificateAuthority = makeCertificate({ name: 'ca', isAuthority: true });
    await using files = temporaryDirectory('proxy-redis');
    const ca = join(files.path, 'ca.crt');
    writeFileSync(ca, certificateAuthority.certificate);
    await using group = await startRedisSentinel({
      password: 'pw',
      sentinelPassword: 'pw-sentinel',
      certificateAuthority,
    });
    const [fleet, address] = [`test-${randomUUID()}`, loopbackAddress()];
    const [password, sentinelPassword] = [new Secret('pw'), new Secret('pw-sentinel')];
    const access = { url: group.url, password, sentinelPassword, ca };
    const store = await openRedisStore({ ...access, fleet, log: silentLogger() });
    await using _closing = { [Symbol.asyncDispose]: () => store.close() };
    await store.usage.seed({ months: [], bases: [] });
    await store.suspensions.markComplete();
    await using first = await echoServer();
    await using second = await echoServer();
    const publisher = new TablePublisher({ store: store.table });
    await publisher.becomeLeader();
    await publisher.publish(tableFor({ n1: address }, [webService([endpointOf(first)])]));
    await using _proxy = await spawnProcess({
      name: 'weir-proxy',
      command: process.execPath,
      args: ['--conditions=source', MAIN],
      readyWhen: /the first routing table is in effect/,
      env: {
        ...process.env,
        WEIR_FLEET: fleet,
        WEIR_NODE: 'n1',
        WEIR_WORKERS: '1',
        WEIR_ADMIN: 'off',
        WEIR_REDIS_URL: group.url,
        WEIR_REDIS_PASSWORD: 'pw',
        WEIR_REDIS_SENTINEL_PASSWORD: 'pw-sentinel',
        WEIR_REDIS_CA: ca,
      },
    });
    await using client = await connectClient({ host: address, port: PORT });
    const exchange = async (text: string): Promise<void> => {
      await client.send(text);
      await client.take(text.length);
    };
    const counted = async (receivedBytes: number): Promise<void> => {
      const [row] = await store.usage.rows(monthOf(Date.now()));
      assert.equal(row?.counters.receivedBytes, receivedBytes);
    };
    await exchange('hello');
    await eventually(() => counted(5));

    const primary = await group.primary();
    await primary.stop({ signal: 'SIGKILL' });
    await eventually(() => assert.equal(store.connection, 'away'));
    await exchange('while it is away');
    await eventually(() => counted(21), { timeoutMs: 30_000 });
    assert.notEqual(await group.primary(), primary);

    publisher.recheck();
    await publisher.publish(tableFor({ n1: address }, [webService([endpointOf(second)])]));
    await eventually(async () => {
      await using another = await connectClient({ host: address, port: PORT });
      await another.send('!');
      await another.take(1);
      assert.ok(second.received > 0);
    });
    await exchange('and still');
    await client.end();
    await client.ended;
  });
});
