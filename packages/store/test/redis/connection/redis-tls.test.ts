import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { silentLogger } from '@weir/runtime';
import { type Certificate, eventually, makeCertificate } from '@weir/testkit';
import { requireProgram, type Redis as Server, startRedis } from '@weir/tools';
import { Redis } from 'ioredis';
import { openRedisStore } from '../../../src/redis/open-redis-store.ts';
import { contentOf, contentOfEntries, entry, openEpochAsLeader, publish, put } from '../../contract/sample-data.ts';
import { type CaFile, createCaFile } from '../fixtures/ca-file.ts';
import { waitUntilReady } from '../fixtures/redis-fixture.ts';
import { startFollowing } from '../fixtures/table-followers.ts';

const log = silentLogger();
const authority = (name: string): Certificate => makeCertificate({ name, isAuthority: true });
const certificateOf = (issuer: Certificate, ...names: string[]): Certificate =>
  makeCertificate({ name: 'redis', names, issuer });

describe('Redis over TLS', requireProgram('redis'), () => {
  test('refuses a certificate of another CA or for another name', async (t) => {
    const ours = authority('ours');
    const server = await start(t, certificateOf(ours, 'localhost'));
    const file = await authorities(t, ours);
    const byName = await openRedisStore({ url: `rediss://localhost:${server.port}`, ca: file.path, fleet: 'f', log });
    assert.equal(byName.connection, 'ready');
    await byName.close();
    const refusal = {
      code: 'REFUSED',
      message: /has a certificate that cannot be verified \(.*IP: 127\.0\.0\.1 is not/,
    };
    await assert.rejects(openRedisStore({ url: server.url, ca: file.path, fleet: 'f', log }), refusal);
    const otherAuthorities = await authorities(t, authority('ours'));
    for (const ca of [otherAuthorities.path, undefined]) {
      const opening = openRedisStore({ url: `rediss://localhost:${server.port}`, ca, fleet: 'f', log });
      await assert.rejects(opening, { code: 'REFUSED', message: /has a certificate that cannot be verified/ });
    }
  });

  test('refuses a missing, empty or damaged CA file with its path', async (t) => {
    const file = await authorities(t, authority('ours'));
    const refusedFor = (why: RegExp): Promise<void> =>
      assert.rejects(
        openRedisStore({ url: 'rediss://127.0.0.1:1', ca: file.path, fleet: 'f', log }),
        (error: Error) => {
          assert.match(error.message, why);
          assert.ok(
            error.message.includes(file.path) &&
              error.message.endsWith('set WEIR_REDIS_CA to a file of PEM certificates'),
          );
          return 'code' in error && error.code === 'REFUSED';
        },
      );
    file.write('');
    await refusedFor(/contains no certificate/);
    file.write('-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');
    await refusedFor(/contains an invalid certificate/);
    file.remove();
    await refusedFor(/cannot be read \(ENOENT/);
  });

  test('stays connected through a new certificate, and reconnects when a new CA is trusted', async (t) => {
    const [old, next] = [authority('old'), authority('next')];
    const server = await start(t, certificateOf(old, '127.0.0.1'));
    const file = await authorities(t, old);
    const open = async () => {
      const store = await openRedisStore({ url: server.url, ca: file.path, fleet: 'f', log });
      t.after(() => store.close());
      return store;
    };
    const [controller, proxy] = [await open(), await open()];
    const { leader, position: opened } = await openEpochAsLeader(controller);
    const followed = startFollowing(t, proxy);
    const first = await publish(controller, { leader, predecessor: opened, changes: [put('a')] });
    const shows = (...entries: Parameters<typeof contentOfEntries>) =>
      eventually(() => assert.deepEqual(contentOf(followed.table), contentOfEntries(...entries)));
    await shows(entry('a'));
    const admin = new Redis({ host: server.host, port: server.port, tls: { ca: old.certificate } });
    t.after(() => admin.disconnect());

    await admin.config('SET', ...Object.entries(server.replaceCertificate(certificateOf(old, '127.0.0.1'))).flat());
    const second = await publish(controller, { leader, predecessor: first, changes: [put('b')] });
    await shows(entry('a'), entry('b'));

    // Redis uses the new certificate before the clients trust the new CA, so new connections fail.
    await admin.config('SET', ...Object.entries(server.replaceCertificate(certificateOf(next, '127.0.0.1'))).flat());
    await admin.call('CLIENT', 'KILL', 'SKIPME', 'yes');
    await eventually(() => {
      for (const { connectionError } of [controller, proxy])
        assert.match(connectionError?.message ?? '', /cannot be verified/);
    });
    file.remove();
    await eventually(() => assert.match(proxy.connectionError?.message ?? '', /ca\.crt cannot be read/));
    file.replace(old, next);
    await Promise.all([waitUntilReady(controller), waitUntilReady(proxy)]);
    await publish(controller, { leader, predecessor: second, changes: [put('c')] });
    await shows(entry('a'), entry('b'), entry('c'));
    assert.equal(followed.epoch, second.epoch);
  });
});

async function start(t: TestContext, certificate: Certificate): Promise<Server> {
  const server = await startRedis({ certificate });
  t.after(() => server.close());
  return server;
}

async function authorities(t: TestContext, ...certificates: readonly Certificate[]): Promise<CaFile> {
  const file = createCaFile(...certificates);
  t.after(() => file.close());
  return file;
}
