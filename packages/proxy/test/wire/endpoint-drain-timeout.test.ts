import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, startServing, webService } from '../fixtures/services.ts';

const DRAIN = { settings: { drainTimeoutMs: 1_000 } };

test('connections to a removed endpoint continue for the drain timeout, and are then reset', async () => {
  await using fleet = await startFleet();
  await using leaving = await echoServer();
  await using staying = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(leaving)], DRAIN));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('a');
  await client.take(1);
  await fleet.serve(webService([endpointOf(staying)], DRAIN));
  await eventually(async () => {
    await using other = await connectClient({ host: fleet.addressOf(), port: PORT });
    await other.send('x');
    await other.take(1);
    assert.ok(staying.acceptedConnections > 0);
  });
  await client.send('b');
  assert.equal((await client.take(1)).toString(), 'b');
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
  await eventually(() => assert.equal(leaving.openConnections, 0));
  assert.equal(outcomesFor(proxy)?.drained, 1);
});

test('connections of a removed Service continue for the drain timeout, and are then reset', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await startServing(fleet, webService([endpointOf(backend)], DRAIN));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('a');
  await client.take(1);
  await fleet.serve();
  await client.send('b');
  assert.equal((await client.take(1)).toString(), 'b');
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
});

test('an endpoint that returns in time keeps its connections', async () => {
  await using fleet = await startFleet();
  await using first = await echoServer();
  await using second = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(first)], DRAIN));
  await using kept = await connectClient({ host: fleet.addressOf(), port: PORT });
  await kept.send('a');
  await kept.take(1);
  const applied = async (revision: number): Promise<void> =>
    eventually(() => assert.ok((proxy.view().applied?.revision ?? 0) >= revision));
  const before = proxy.view().applied?.revision ?? 0;
  await fleet.serve(webService([endpointOf(second)], DRAIN));
  await applied(before + 1);
  await using severed = await connectClient({ host: fleet.addressOf(), port: PORT });
  await severed.send('a');
  await severed.take(1);
  await fleet.serve(webService([endpointOf(first)], DRAIN));
  await applied(before + 2);
  // The second endpoint was removed later than the first. So by the time this connection is reset, a drain timeout of
  // the first endpoint would also have expired.
  assert.deepEqual(await severed.ended, { kind: 'error', code: 'ECONNRESET' });
  await kept.send('b');
  assert.equal((await kept.take(1)).toString(), 'b');
});
