import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectRaw, echoServer, eventually } from '@weir/testkit';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/ports.ts';
import { endpointOf, outcomesOf, serving, web } from '../fixtures/serving.ts';

const DRAIN = { settings: { drainTimeoutMs: 1_000 } };

test('connections to an endpoint that left go on for the drain timeout, and are reset then', async () => {
  await using fleet = await startFleet();
  await using leaving = await echoServer();
  await using staying = await echoServer();
  const proxy = await serving(fleet, web([endpointOf(leaving)], DRAIN));
  await using client = await connectRaw({ host: fleet.addressOf(), port: PORT });
  await client.send('a');
  await client.take(1);
  await fleet.serve(web([endpointOf(staying)], DRAIN));
  await eventually(async () => {
    await using other = await connectRaw({ host: fleet.addressOf(), port: PORT });
    await other.send('x');
    await other.take(1);
    assert.ok(staying.accepted > 0);
  });
  await client.send('b');
  assert.equal((await client.take(1)).toString(), 'b');
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
  await eventually(() => assert.equal(leaving.open, 0));
  assert.equal(outcomesOf(proxy)?.drained, 1);
});

test('those of a Service that is gone do, too', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await serving(fleet, web([endpointOf(backend)], DRAIN));
  await using client = await connectRaw({ host: fleet.addressOf(), port: PORT });
  await client.send('a');
  await client.take(1);
  await fleet.serve();
  await client.send('b');
  assert.equal((await client.take(1)).toString(), 'b');
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
});

test('an endpoint that comes back in time keeps its connections', async () => {
  await using fleet = await startFleet();
  await using first = await echoServer();
  await using second = await echoServer();
  const proxy = await serving(fleet, web([endpointOf(first)], DRAIN));
  await using kept = await connectRaw({ host: fleet.addressOf(), port: PORT });
  await kept.send('a');
  await kept.take(1);
  const applied = async (revision: number): Promise<void> =>
    eventually(() => assert.ok((proxy.view().applied?.revision ?? 0) >= revision));
  const before = proxy.view().applied?.revision ?? 0;
  await fleet.serve(web([endpointOf(second)], DRAIN));
  await applied(before + 1);
  await using severed = await connectRaw({ host: fleet.addressOf(), port: PORT });
  await severed.send('a');
  await severed.take(1);
  await fleet.serve(web([endpointOf(first)], DRAIN));
  await applied(before + 2);
  // The second one left later than the first: when its connections are gone, the first one's time would have been over.
  assert.deepEqual(await severed.ended, { kind: 'error', code: 'ECONNRESET' });
  await kept.send('b');
  assert.equal((await kept.take(1)).toString(), 'b');
});
