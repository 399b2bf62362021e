import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, startServing, webService } from '../fixtures/services.ts';

test('a drain refuses new connections, lets open ones end, and reports all usage before the end', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('before');
  await client.take(6);
  const closing = proxy.close({ drainMs: 20_000 });
  await eventually(async () => {
    const [heartbeat] = await fleet.heartbeats();
    assert.deepEqual(
      { draining: heartbeat?.draining, listeners: heartbeat?.listeners },
      { draining: true, listeners: [] },
    );
  });
  await assert.rejects(connectClient({ host: fleet.addressOf(), port: PORT }), { code: 'ECONNREFUSED' });
  await client.send('during');
  assert.equal((await client.take(6)).toString(), 'during');
  await client.end();
  await client.ended;
  await closing;
  assert.deepEqual(await fleet.heartbeats(), []);
  assert.deepEqual((await fleet.usage()).web, { receivedBytes: 12, sentBytes: 12, connections: 1, requests: 0 });
});

test('resets open connections at the end of the drain, and a drain can be aborted', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('x');
  await client.take(1);
  const closing = proxy.close({ drainMs: 600_000 });
  await proxy.close({ drainMs: 0 });
  await closing;
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
  assert.deepEqual(proxy.view().services[0]?.outcomes, { drained: 1 });
  await eventually(() => assert.equal(backend.openConnections, 0));
});

test('closes at once if it never had a table', async () => {
  await using fleet = await startFleet();
  const proxy = await fleet.proxy();
  await proxy.close();
  await assert.rejects(proxy.ready, /closed/);
});
