import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectRaw, echoServer, eventually } from '@weir/testkit';
import { reportOf, startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/ports.ts';
import { endpointOf, outcomesOf, serving, web } from '../fixtures/serving.ts';

const RESET = { kind: 'error', code: 'ECONNRESET' };
const GAME_PORT = 9_090;

test('a cut-off resets the tenant’s connections on both sides, refuses new ones, and leaves others alone', async () => {
  await using fleet = await startFleet();
  await using shop = await echoServer();
  await using games = await echoServer();
  const proxy = await serving(
    fleet,
    web([endpointOf(shop)]),
    web([endpointOf(games)], { name: 'game', namespace: 'games', port: GAME_PORT }),
  );
  const host = fleet.addressOf();
  const abusers = await Promise.all(Array.from({ length: 450 }, () => connectRaw({ host, port: PORT })));
  await using other = await connectRaw({ host, port: GAME_PORT });
  await eventually(() => assert.equal(shop.open, 450));
  await fleet.cutOff({ kind: 'tenant', tenant: 'shop' }, 'abuse');
  for (const abuser of abusers) assert.deepEqual(await abuser.ended, RESET);
  await reportOf(proxy, { bound: true, listening: false, error: null });
  await assert.rejects(connectRaw({ host, port: PORT }), { code: 'ECONNREFUSED' });
  await eventually(() => assert.equal(shop.open, 0));
  assert.deepEqual(outcomesOf(proxy), { 'cut-off': 450 });
  await other.send('undisturbed');
  assert.equal((await other.take(11)).toString(), 'undisturbed');

  await fleet.store.cutoffs.remove('abuse');
  await reportOf(proxy, { bound: true, listening: true });
  await using back = await connectRaw({ host, port: PORT });
  await back.send('back');
  assert.equal((await back.take(4)).toString(), 'back');
});

test('a connection of a Service that is gone already is still found by a cut-off', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await serving(fleet, web([endpointOf(backend)]));
  await using client = await connectRaw({ host: fleet.addressOf(), port: PORT });
  await client.send('x');
  await client.take(1);
  await fleet.serve();
  await eventually(() => assert.deepEqual(proxy.view().listeners, []));
  await fleet.cutOff({ kind: 'service', namespace: 'shop', service: 'web' });
  assert.deepEqual(await client.ended, RESET);
});

test('a Service that is cut off when the proxy starts is never open', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await fleet.cutOff({ kind: 'namespace', namespace: 'shop' });
  const proxy = await serving(fleet, web([endpointOf(backend)]));
  await assert.rejects(connectRaw({ host: fleet.addressOf(), port: PORT }), { code: 'ECONNREFUSED' });
  assert.deepEqual(
    proxy.view().listeners.map(({ bound, listening }) => ({ bound, listening })),
    [{ bound: true, listening: false }],
  );
  assert.equal(backend.accepted, 0);
});
