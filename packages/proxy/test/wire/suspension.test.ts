import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import { startFleet, waitForListenerReport } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, startServing, webService } from '../fixtures/services.ts';

const RESET = { kind: 'error', code: 'ECONNRESET' };
const GAME_PORT = 9_090;

test('a suspension resets the tenant’s connections on both sides, refuses new ones, and affects no others', async () => {
  await using fleet = await startFleet();
  await using shop = await echoServer();
  await using games = await echoServer();
  const proxy = await startServing(
    fleet,
    webService([endpointOf(shop)]),
    webService([endpointOf(games)], { name: 'game', namespace: 'games', port: GAME_PORT }),
  );
  const host = fleet.addressOf();
  const abusers = await Promise.all(Array.from({ length: 450 }, () => connectClient({ host, port: PORT })));
  await using other = await connectClient({ host, port: GAME_PORT });
  await eventually(() => assert.equal(shop.openConnections, 450));
  await fleet.cutOff({ kind: 'tenant', tenant: 'shop' }, 'abuse');
  for (const abuser of abusers) assert.deepEqual(await abuser.ended, RESET);
  await waitForListenerReport(proxy, { bound: true, listening: false, error: null });
  await assert.rejects(connectClient({ host, port: PORT }), { code: 'ECONNREFUSED' });
  await eventually(() => assert.equal(shop.openConnections, 0));
  assert.deepEqual(outcomesFor(proxy), { 'cut-off': 450 });
  await other.send('undisturbed');
  assert.equal((await other.take(11)).toString(), 'undisturbed');

  await fleet.store.suspensions.remove('abuse');
  await waitForListenerReport(proxy, { bound: true, listening: true });
  await using back = await connectClient({ host, port: PORT });
  await back.send('back');
  assert.equal((await back.take(4)).toString(), 'back');
});

test('a suspension finds a connection of a Service that was removed', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('x');
  await client.take(1);
  await fleet.serve();
  await eventually(() => assert.deepEqual(proxy.view().listeners, []));
  await fleet.cutOff({ kind: 'service', namespace: 'shop', service: 'web' });
  assert.deepEqual(await client.ended, RESET);
});

test('a Service that is suspended when the proxy starts is never open', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await fleet.cutOff({ kind: 'namespace', namespace: 'shop' });
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  await assert.rejects(connectClient({ host: fleet.addressOf(), port: PORT }), { code: 'ECONNREFUSED' });
  assert.deepEqual(
    proxy.view().listeners.map(({ bound, listening }) => ({ bound, listening })),
    [{ bound: true, listening: false }],
  );
  assert.equal(backend.acceptedConnections, 0);
});
