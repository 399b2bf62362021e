// Tests what a client and an operator notice of rules: reports, throttles and Suspensions, from real traffic through the ledger.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, freePort } from '@weir/testkit';
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

/** Sends bytes through one connection to the echo server, which sends them back. */
async function echoBytes(port: number, bytes: number): Promise<void> {
  await using client = await connectClient({ host: '127.0.0.1', port });
  await client.send(Buffer.alloc(bytes));
  await client.take(bytes);
}

interface TenantJson {
  readonly limits: { readonly inBitsPerSecond?: number; readonly outBitsPerSecond?: number };
  readonly rules: readonly { readonly rule: string; readonly action: string }[];
}

test('rules of a budget report its use, throttle the tenant until the month ends, and suspend it', {
  timeout: 180_000,
}, async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  const budget = (name: string, above: string, rest: object): object => ({
    name,
    metric: 'trafficPerMonth',
    above,
    ...rest,
  });
  files.write('policy.yaml', {
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'TenantPolicy',
    metadata: { name: 'shops' },
    spec: {
      limits: { trafficPerMonth: '1M' },
      rules: [
        budget('tell', '50%', { action: 'Notify' }),
        budget('slow', '80%', { action: 'Throttle', throttleTo: '400k' }),
        budget('stop', '120%', { action: 'Suspend', duration: '10m' }),
      ],
    },
  });
  await using fleet = await startTestStandalone(files);
  const tenant = async (): Promise<TenantJson> => (await fleet.weir('get', 'tenants', '-o', 'json')).json.items[0];
  const actions = async (): Promise<string[]> => (await tenant()).rules.map(({ rule, action }) => `${rule} ${action}`);
  const bandwidths = async (): Promise<(number | undefined)[]> => {
    const { limits } = await tenant();
    return [limits.inBitsPerSecond, limits.outBitsPerSecond];
  };

  await echoBytes(port, 300_000);
  await eventually(async () => assert.deepEqual(await actions(), ['tell Notify']), WAIT);
  assert.deepEqual(await bandwidths(), [undefined, undefined]);

  await echoBytes(port, 150_000);
  await eventually(async () => assert.deepEqual(await actions(), ['tell Notify', 'slow Throttle']), WAIT);
  const explained = (await fleet.weir('explain', 'shop/web')).stdout;
  assert.match(
    explained,
    /OverLimit\): rule "slow" of TenantPolicy "shops" throttles: inBitsPerSecond and outBitsPerSecond of tenant "shop" are limited to 400 kbit\/s until \d{4}-\d\d-01T00:00:00Z, because of 9\d\d kB this month, above 800 kB/,
  );
  assert.match(explained, /tenant "shop" has used at least 800000 bytes \(80 %\) .* the count starts again at \d{4}-/);
  assert.deepEqual(await bandwidths(), [400_000, 400_000]);

  await using client = await connectClient({ host: '127.0.0.1', port });
  await client.send(Buffer.alloc(160_000));
  await client.take(160_000);
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
  assert.equal(await isServed(port), false);
  const { json } = await fleet.weir('get', 'suspensions', '-o', 'json');
  assert.match(json.items[0].rule, /^stop: 1\.2\d MB this month, above 1\.2 MB$/);
  assert.match(
    (await fleet.weir('explain', 'shop/web')).stdout,
    /rule "stop" of TenantPolicy "shops" suspends tenant "shop" until \S+Z, because of 1\.2\d MB this month/,
  );
});
