import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connectClient, echoServer, eventually, freePort, temporaryDirectory } from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone, type TestStandalone } from '../fixtures/standalone.ts';
import { runWeirProcess } from '../fixtures/weir-process.ts';

test('keeps usage and Suspensions over a restart with --state', async () => {
  await using files = manifestDirectory();
  await using state = temporaryDirectory('state');
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  {
    await using before = await startTestStandalone(files, ['--state', state.path]);
    await exchange(port, 1_000);
    await usesExactly(before, 1_000);
    await before.weir('suspend', 'shop', '--message', 'Stop.');
  }
  await using after = await startTestStandalone(files, ['--state', state.path]);
  await usesExactly(after, 1_000);
  const [web] = (await after.weir('get', 'services', '-o', 'json')).json.items;
  assert.equal(web.state, 'Suspended');
  assert.match(web.message, /^Stop\. \(suspended \S+Z by an unknown user\)$/);
  await assert.rejects(connectClient({ port }), /ECONNREFUSED/);
  await after.weir('resume', 'shop');
  await eventually(() => exchange(port, 500));
  await usesExactly(after, 1_500);
});

test('keeps a Suspension over a restart while its file has a mistake', async () => {
  await using files = manifestDirectory();
  await using state = temporaryDirectory('state');
  await using backend = await echoServer();
  const port = await freePort();
  const suspension = { target: { type: 'Tenant', tenant: 'shop' }, message: 'Stop.' };
  const valid = { apiVersion: 'weir.dev/v1alpha1', kind: 'Suspension', metadata: { name: 'stop' }, spec: suspension };
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  files.write('stop.yaml', valid);
  const stateOf = async (running: TestStandalone): Promise<string> =>
    (await running.weir('get', 'services', '-o', 'json')).json.items[0].state;
  {
    await using before = await startTestStandalone(files, ['--state', state.path]);
    assert.equal(await stateOf(before), 'Suspended');
  }
  files.writeText('stop.yaml', 'kind: Suspension\n  name: [');
  await using after = await startTestStandalone(files, ['--state', state.path]);
  assert.equal(await stateOf(after), 'Suspended');
  await assert.rejects(connectClient({ port }), /ECONNREFUSED/);
  files.remove('stop.yaml');
  await eventually(() => exchange(port, 500));
});

test('exits with 0 after a drain request on the admin socket', async () => {
  await using files = manifestDirectory();
  await using state = temporaryDirectory('state');
  files.write('shop.yaml', service('web', { port: await freePort() }));
  await using running = await startTestStandalone(files, ['--state', state.path]);
  const socketPath = join(state.path, 'proxy-local', 'admin.sock');
  const drainRequest = request({ socketPath, path: '/drain', method: 'POST' }).end();
  const [response] = await once(drainRequest, 'response');
  assert.equal(response.statusCode, 202);
  assert.equal((await running.process.exited).code, 0);
});

test('refuses a state directory that another process uses', async () => {
  await using files = manifestDirectory();
  await using state = temporaryDirectory('state');
  files.write('shop.yaml', service('web', { port: await freePort() }));
  await using _running = await startTestStandalone(files, ['--state', state.path]);
  const { code, output } = await runWeirProcess([
    'standalone',
    '-f',
    files.path,
    '--console',
    'off',
    '--state',
    state.path,
  ]);
  assert.equal(code, 2, output);
  assert.match(output, /^weir: --state: the state directory \S+ is in use by another process; [^\n]*\n$/);
});

test('reports an unusable state directory', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'));
  files.writeText('file', '');
  const { code, output } = await runWeirProcess([
    'standalone',
    '-f',
    files.path,
    '--console',
    'off',
    '--state',
    `${files.path}/file`,
  ]);
  assert.equal(code, 2, output);
  assert.match(output, /^weir: --state: .*\n$/);
});

describe('over a real Redis', requireProgram('redis'), () => {
  test('serves, counts and suspends as with a store in memory', async () => {
    await using redis = await startRedis({ password: 'open sesame' });
    await using files = manifestDirectory();
    await using backend = await echoServer();
    const port = await freePort();
    files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
    await using fleet = await startTestStandalone(files, ['--redis', redis.url]);
    await exchange(port, 2_000);
    await usesExactly(fleet, 2_000);
    assert.equal((await fleet.weir('suspend', 'shop', '--message', 'Stop.')).code, 0);
    await eventually(() => assert.rejects(connectClient({ port }), /ECONNREFUSED/));
  });

  test('exits with 2 on a wrong password without printing the password', async () => {
    await using redis = await startRedis({ password: 'right' });
    await using files = manifestDirectory();
    files.write('shop.yaml', service('web'));
    const url = `redis://:wrong-one@127.0.0.1:${redis.port}`;
    const { code, output } = await runWeirProcess(['standalone', '-f', files.path, '--console', 'off', '--redis', url]);
    assert.equal(code, 2, output);
    assert.match(output, /^weir: --redis: Redis at 127\.0\.0\.1:\d+ refuses the user name or password/);
    assert.doesNotMatch(output, /wrong-one/);
  });
});

/** Sends the bytes to the Service on one connection and receives their echo. */
async function exchange(port: number, bytes: number): Promise<void> {
  await using client = await connectClient({ port, expectPattern: 3 });
  await client.sendPattern({ bytes, seed: 3 });
  await client.end();
  await client.ended;
  assert.equal(client.received, bytes);
}

function usesExactly(fleet: TestStandalone, bytes: number): Promise<void> {
  return eventually(async () => {
    const [shop] = (await fleet.weir('usage', '-o', 'json')).json.items;
    assert.deepEqual([shop.receivedBytes, shop.sentBytes], [bytes, bytes]);
  });
}
