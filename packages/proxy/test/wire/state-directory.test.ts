// Tests the state that a proxy restores from its state directory.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodeJournal } from '@weir/model/data-plane';
import { StoreError } from '@weir/store';
import { connectClient, echoServer, eventually, temporaryDirectory } from '@weir/testkit';
import { withUsage } from '../fixtures/faulty-store.ts';
import { startFleet, waitForListenerReport } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';

test('serves the last table and keeps suspensions when it starts while the store is unreachable', async () => {
  await using fleet = await startFleet();
  await using directory = temporaryDirectory('proxy');
  await using backend = await echoServer();
  await fleet.serve(
    webService([endpointOf(backend)]),
    webService([endpointOf(backend)], { name: 'bad', namespace: 'spam', port: 9_090 }),
  );
  await fleet.cutOff({ kind: 'namespace', namespace: 'spam' });
  const first = await fleet.proxy({ stateDirectory: directory.path });
  await first.ready;
  const { applied } = first.view();
  await first.close();

  fleet.store.faults.goAway();
  const second = await fleet.proxy({ stateDirectory: directory.path });
  await second.ready;
  assert.deepEqual(second.view().applied, applied);
  await assert.rejects(connectClient({ host: fleet.addressOf(), port: 9_090 }), { code: 'ECONNREFUSED' });
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('offline');
  assert.equal((await client.take(7)).toString(), 'offline');
  assert.equal(second.view().life, null);

  fleet.store.faults.comeBack();
  await fleet.serve(webService([]));
  await waitForListenerReport(second, { bound: true, listening: false });
  await eventually(async () => assert.equal((await fleet.usage()).web?.receivedBytes, 7));
  assert.ok(Number(second.view().life) > Number(first.view().life));
});

test('waits for the store without a stored table, and keeps its table when the store is emptied', async () => {
  await using fleet = await startFleet();
  await using directory = temporaryDirectory('proxy');
  fleet.store.faults.goAway();
  const proxy = await fleet.proxy({ stateDirectory: directory.path });
  await using backend = await echoServer();
  fleet.store.faults.comeBack();
  assert.equal(proxy.view().applied, null);
  await fleet.serve(webService([endpointOf(backend)]));
  await proxy.ready;
  fleet.store.faults.wipe();
  await eventually(async () => assert.equal(await fleet.store.table.read(), undefined));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('x');
  await client.take(1);
});

test('the next incarnation reports usage that was not flushed before the end, once', async () => {
  await using fleet = await startFleet();
  await using directory = temporaryDirectory('proxy');
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  const first = await fleet.proxy({ stateDirectory: directory.path });
  await first.ready;
  fleet.store.faults.goAway();
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('unflushed');
  await client.take(9);
  await client.end();
  await client.ended;
  await first.close();
  fleet.store.faults.comeBack();
  assert.deepEqual(await fleet.usage(), {});
  for (let restart = 0; restart < 2; restart += 1) {
    const next = await fleet.proxy({ stateDirectory: directory.path });
    await next.ready;
    await eventually(async () => assert.equal((await fleet.usage()).web?.receivedBytes, 9));
    await next.close();
  }
  assert.deepEqual((await fleet.usage()).web, { receivedBytes: 9, sentBytes: 9, connections: 1, requests: 0 });
});

test('writes the journal while the store does not answer a report', async () => {
  await using fleet = await startFleet();
  await using directory = temporaryDirectory('proxy');
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  const reported = Promise.withResolvers<void>();
  const timedOut = Promise.withResolvers<never>();
  timedOut.promise.catch(() => undefined);
  const flush = (): Promise<never> => {
    reported.resolve();
    return timedOut.promise;
  };
  const proxy = await fleet.proxy({ store: withUsage(fleet.store, { flush }), stateDirectory: directory.path });
  await using _answer = { [Symbol.asyncDispose]: async () => timedOut.reject(new StoreError('AWAY', 'timed out')) };
  await proxy.ready;
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('first');
  await client.take(5);
  await reported.promise;
  await client.send('second');
  await client.take(6);
  const folder = join(directory.path, 'proxy-a');
  await eventually(() => {
    const file = readdirSync(folder).find((name) => name.startsWith('usage-')) ?? assert.fail('no journal');
    const journal = decodeJournal(JSON.parse(readFileSync(join(folder, file), 'utf8')).journal);
    const [slot] = journal?.slots.values() ?? [];
    assert.equal(slot?.points.at(-1)?.counters.receivedBytes, 11);
  });
});

test('drops the journal of an incarnation whose account was closed meanwhile', async () => {
  await using fleet = await startFleet();
  await using directory = temporaryDirectory('proxy');
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  const first = await fleet.proxy({ stateDirectory: directory.path });
  await first.ready;
  await eventually(() => assert.notEqual(first.view().life, null));
  const life = Number(first.view().life);
  fleet.store.faults.goAway();
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('late');
  await client.take(4);
  await first.close({ drainMs: 0 });
  fleet.store.faults.comeBack();
  await fleet.store.usage.fold('a', life);
  const next = await fleet.proxy({ stateDirectory: directory.path });
  await next.ready;
  const journal = join(directory.path, 'proxy-a', `usage-${life}.json`);
  await eventually(() =>
    assert.ok(!readdirSync(join(directory.path, 'proxy-a')).includes(`usage-${life}.json`), journal),
  );
  assert.deepEqual(await fleet.usage(), {});
});

test('continues under a new incarnation if its account was closed while it ran', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  const proxy = await fleet.proxy();
  await proxy.ready;
  await eventually(() => assert.notEqual(proxy.view().life, null));
  const life = Number(proxy.view().life);
  await fleet.store.usage.fold('a', life);
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('dropped');
  await client.take(7);
  await eventually(() => assert.ok(Number(proxy.view().life) > life));
  await client.send('counted');
  await client.take(7);
  await eventually(async () => assert.equal((await fleet.usage()).web?.receivedBytes, 7));
});

test('starts with damaged files, and leaves them in place', async () => {
  await using fleet = await startFleet();
  await using directory = temporaryDirectory('proxy');
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  const first = await fleet.proxy({ stateDirectory: directory.path });
  await first.ready;
  await first.close();
  const folder = join(directory.path, 'proxy-a');
  const files = readdirSync(folder);
  assert.deepEqual(files.filter((file) => !file.startsWith('usage-')).sort(), [
    'cutoffs-unsynced.json',
    'cutoffs.json',
    'table.json',
  ]);
  for (const file of files) writeFileSync(join(folder, file), readFileSync(join(folder, file), 'utf8').slice(0, -9));
  const second = await fleet.proxy({ stateDirectory: directory.path });
  await second.ready;
  assert.equal(second.view().listeners[0]?.listening, true);
});

test('reports all usage again to a ledger that was rolled back', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  const proxy = await fleet.proxy();
  await proxy.ready;
  const back = fleet.store.faults.checkpoint();
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('four');
  await client.take(4);
  await eventually(async () => assert.equal((await fleet.usage()).web?.receivedBytes, 4));
  fleet.store.faults.goAway();
  back();
  fleet.store.faults.comeBack();
  await eventually(async () => assert.equal((await fleet.usage()).web?.receivedBytes, 4));
});
