import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { outcomesFor, startServing, webService } from '../fixtures/services.ts';

const SIZE = 1_000;

test('drops datagrams above the tenant’s rate, and counts all of them as received', async () => {
  await using fleet = await startFleet();
  const endpoint = createSocket('udp4').bind(0, '127.0.0.1');
  await once(endpoint, 'listening');
  let arrived = 0;
  endpoint.on('message', () => {
    arrived += 1;
  });
  fleet.limit('shop', { inBitsPerSecond: 80_000 });
  const proxy = await startServing(
    fleet,
    webService([{ address: '127.0.0.1', port: endpoint.address().port }], { protocol: 'UDP' }),
  );
  const client = createSocket('udp4');
  const startedAt = performance.now();
  const send = (): Promise<void> =>
    new Promise((resolve) => client.send(Buffer.alloc(SIZE), PORT, fleet.addressOf(), () => resolve()));
  for (let datagram = 0; datagram < 100; datagram += 1) await send();
  const received = (): number | undefined => proxy.view().services[0]?.counters.receivedBytes;
  await eventually(() => assert.equal(received(), 100 * SIZE));
  await eventually(() => assert.ok(arrived >= 1));
  const seconds = (performance.now() - startedAt) / 1_000;
  // The limit is 10 datagrams per second with a burst of 50 ms, and the last datagram may exceed the limit.
  assert.ok(arrived <= 2 + Math.ceil((seconds + 0.05) * 10), `${arrived} in ${seconds} s`);
  const before = arrived;
  await eventually(async () => {
    await send();
    assert.ok(arrived > before);
  });
  client.close();
  endpoint.close();
});

test('counts flows towards the tenant’s connection limit', async () => {
  await using fleet = await startFleet();
  const endpoint = createSocket('udp4').bind(0, '127.0.0.1');
  await once(endpoint, 'listening');
  fleet.limit('shop', { connections: 2 });
  const proxy = await startServing(
    fleet,
    webService([{ address: '127.0.0.1', port: endpoint.address().port }], { protocol: 'UDP' }),
  );
  const clients = [1, 2, 3].map(() => createSocket('udp4'));
  for (const client of clients) client.send('x', PORT, fleet.addressOf());
  await eventually(() => assert.equal(outcomesFor(proxy)?.['connection-limit'], 1));
  assert.equal(proxy.view().services[0]?.active, 2);
  for (const client of clients) client.close();
  endpoint.close();
});
