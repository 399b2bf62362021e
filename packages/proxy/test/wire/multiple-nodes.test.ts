// Tests proxies of several nodes in one process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, startServing, webService } from '../fixtures/services.ts';

test('each node serves its own part of the table on its own address', async () => {
  await using fleet = await startFleet({ nodes: ['a', 'b'] });
  await using everywhere = await echoServer();
  await using onlyB = await echoServer();
  await fleet.serve(
    webService([endpointOf(everywhere)]),
    webService([endpointOf(onlyB)], { name: 'b-only', port: 9_090, nodes: ['b'] }),
  );
  const [a, b] = await Promise.all([fleet.proxy({ node: 'a' }), fleet.proxy({ node: 'b' })]);
  await Promise.all([a.ready, b.ready]);
  for (const node of ['a', 'b']) {
    await using client = await connectClient({ host: fleet.addressOf(node), port: PORT });
    await client.send(node);
    assert.equal((await client.take(1)).toString(), node);
  }
  await assert.rejects(connectClient({ host: fleet.addressOf('a'), port: 9_090 }), { code: 'ECONNREFUSED' });
  await using _client = await connectClient({ host: fleet.addressOf('b'), port: 9_090 });
  assert.equal(a.view().listeners.length, 1);
  assert.equal(b.view().listeners.length, 2);
  assert.deepEqual(a.view().addresses, [fleet.addressOf('a')]);
  await eventually(async () =>
    assert.deepEqual(
      (await fleet.heartbeats()).map(({ node }) => node),
      ['a', 'b'],
    ),
  );
});

test('a Service that is added to a node later arrives with its endpoints', async () => {
  await using fleet = await startFleet({ nodes: ['a', 'b'] });
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)], { nodes: ['b'] }));
  assert.deepEqual(proxy.view().listeners, []);
  await fleet.serve(webService([endpointOf(backend)], { nodes: ['a', 'b'] }));
  await eventually(async () => {
    await using client = await connectClient({ host: fleet.addressOf('a'), port: PORT });
    await client.send('x');
    await client.take(1);
  });
});
