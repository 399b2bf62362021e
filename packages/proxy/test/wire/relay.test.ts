// Bytes across one proxy, as a client sees them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectRaw, echoServer, eventually, patternServer } from '@weir/testkit';
import { startFleet } from '../fixtures/fleet.ts';

test('a connection goes to an endpoint, and ends by FIN both ways', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await fleet.serve({ name: 'web', port: 8080, endpoints: [{ address: backend.host, port: backend.port }] });
  const proxy = await fleet.proxy();
  await proxy.ready;
  await using client = await connectRaw({ host: fleet.addressOf(), port: 8080 });
  await client.send('hello');
  assert.equal((await client.take(5)).toString(), 'hello');
  await client.end();
  assert.deepEqual(await client.ended, { kind: 'end' });
  await eventually(() => {
    const [service] = proxy.view().services;
    assert.deepEqual(service?.outcomes, { completed: 1 });
    assert.deepEqual(service?.counters, { receivedBytes: 5, sentBytes: 5, connections: 1, requests: 0 });
    assert.equal(service?.active, 0);
  });
});
