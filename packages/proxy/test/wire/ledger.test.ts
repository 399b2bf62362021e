import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import { faultyStore, type ReportFate } from '../fixtures/faulty-store.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, startServing, webService } from '../fixtures/services.ts';

const FATES: readonly ReportFate[] = ['lost', 'unanswered', 'repeated', 'overtaken', 'arrives'];

test('the ledger equals the clients’ own counts with reports lost, repeated and reordered', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  let reports = 0;
  const store = faultyStore(fleet.store, () => FATES[reports++ % FATES.length] ?? 'arrives');
  const proxy = await fleet.proxy({ store, workers: 2 });
  await proxy.ready;
  let bytes = 0;
  let connections = 0;
  const talk = async (): Promise<void> => {
    await using client = await connectClient({ host: fleet.addressOf(), port: PORT, expectPattern: 1 });
    await client.sendPattern({ bytes: 10_000, seed: 1 });
    await client.end();
    await client.ended;
    bytes += client.received;
    connections += 1;
  };
  while (reports < FATES.length + 1) await Promise.all([talk(), talk(), talk()]);
  await eventually(async () => {
    assert.deepEqual((await fleet.usage()).web, { receivedBytes: bytes, sentBytes: bytes, connections, requests: 0 });
  });
});

test('counts a Service whose only port changes without interruption', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  await fleet.serve(webService([endpointOf(backend)], { port: 9_090 }));
  await using client = await eventually(() => connectClient({ host: fleet.addressOf(), port: 9_090 }));
  await client.send('moved');
  await client.take(5);
  // The client may receive the bytes before the worker counts them.
  await eventually(() => {
    const [service] = proxy.view().services;
    assert.deepEqual(service?.counters, { receivedBytes: 5, sentBytes: 5, connections: 1, requests: 0 });
  });
});
