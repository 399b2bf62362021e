// Tests what a client and an operator notice of rules: a Suspension and a throttle, from real traffic through the ledger.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { echoServer, eventually, freePort } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';

const WAIT = { timeoutMs: 60_000, intervalMs: 200 };

const policyWith = (rule: object): object => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'TenantPolicy',
  metadata: { name: 'shops' },
  spec: { limits: { newConnectionsPerSecond: 1000 }, rules: [rule] },
});

/** Sends about 1 Mbit/s through one connection until the connection ends. Resolves with the code of the error. */
function sendUntilReset(port: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect({ host: '127.0.0.1', port });
  const timer = setInterval(() => socket.write(Buffer.alloc(12_500)), 100);
  let code = 'end';
  socket.on('error', (error: NodeJS.ErrnoException) => {
    code = error.code ?? '';
  });
  socket.resume();
  socket.on('close', () => {
    clearInterval(timer);
    resolve(code);
  });
  return promise;
}

/** Connects once. Resolves with whether the Service answers. */
function isServed(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: '127.0.0.1', port }, () => socket.write('hello'));
  socket.once('data', () => {
    resolve(true);
    socket.destroy();
  });
  socket.on('error', () => undefined);
  socket.on('close', () => resolve(false));
  return promise;
}

test('a rule suspends a tenant until a user resumes it, and another rule throttles it', {
  timeout: 180_000,
}, async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  const suspend = { name: 'stop', metric: 'inBitsPerSecond', above: '100k', action: 'Suspend', duration: '10m' };
  files.write('policy.yaml', policyWith(suspend));
  await using fleet = await startTestStandalone(files);
  // A write after the reset fails with EPIPE.
  assert.match(await sendUntilReset(port), /^(ECONNRESET|EPIPE)$/);
  assert.equal(await isServed(port), false);
  const { json } = await fleet.weir('get', 'suspensions', '-o', 'json');
  assert.match(json.items[0].rule, /^stop: \S+ [kM]bit\/s in, above 100 kbit\/s$/);
  assert.match(
    (await fleet.weir('explain', 'shop/web')).stdout,
    /rule "stop" of TenantPolicy "shops" suspends tenant "shop" until/,
  );
  assert.equal((await fleet.weir('resume', 'shop')).code, 0);
  await eventually(async () => assert.ok(await isServed(port)), WAIT);

  const throttle = {
    name: 'slow',
    metric: 'newConnectionsPerSecond',
    above: '2',
    action: 'Throttle',
    throttleTo: 1,
    duration: '10m',
  };
  files.write('policy.yaml', policyWith(throttle));
  await eventually(async () => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => isServed(port)));
    assert.ok(answers.includes(false), 'the rate of new connections is limited');
  }, WAIT);
  assert.match(
    (await fleet.weir('explain', 'shop/web')).stdout,
    /OverLimit\): rule "slow" of TenantPolicy "shops" throttles: newConnectionsPerSecond of tenant "shop" is limited to 1 connections\/s until/,
  );
  const tenants = (await fleet.weir('get', 'tenants', '-o', 'json')).json.items;
  assert.deepEqual(
    tenants.map(({ rules }: { rules: { rule: string; action: string }[] }) =>
      rules.map(({ rule, action }) => [rule, action]),
    ),
    [[['slow', 'Throttle']]],
  );
});
