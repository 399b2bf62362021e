// Tests listeners that open, close and cannot be opened.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import { startFleet, waitForListenerReport, waitForTable } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, startServing, webService } from '../fixtures/services.ts';
import { uidOf } from '../fixtures/tables.ts';

const REFUSED = { code: 'ECONNREFUSED' };

test('a Service without a ready endpoint has its port allocated but refuses clients, until its first endpoint', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([]));
  await waitForListenerReport(proxy, { bound: true, listening: false, error: null });
  await assert.rejects(connectClient({ host: fleet.addressOf(), port: PORT }), REFUSED);
  await fleet.serve(webService([endpointOf(backend)]));
  await waitForListenerReport(proxy, { bound: true, listening: true });
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('here');
  await client.take(4);
  await fleet.serve(webService([]));
  await waitForListenerReport(proxy, { bound: true, listening: false });
  await assert.rejects(connectClient({ host: fleet.addressOf(), port: PORT }), REFUSED);
  await client.send('still here');
  assert.equal((await client.take(10)).toString(), 'still here');
});

test('a listener is open at the end of a series of endpoint changes', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  for (let round = 0; round < 20; round += 1) {
    await fleet.serve(webService([]));
    await fleet.serve(webService([endpointOf(backend)]));
  }
  await waitForTable(fleet, proxy);
  await waitForListenerReport(proxy, { bound: true, listening: true, error: null });
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('x');
  assert.equal((await client.take(1)).toString(), 'x');
});

test('a port of another process is reported with a remedy, and opened when it is free', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const foreign = await echoServer({ host: fleet.addressOf(), port: PORT });
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  const { error } = await waitForListenerReport(proxy, { bound: false, listening: false });
  assert.match(
    String(error),
    new RegExp(`^cannot listen on ${fleet.addressOf()}:${PORT}: the port is in use by another`),
  );
  assert.match(String(error), /; stop that process, or give the Service another port$/);
  await eventually(async () => {
    assert.equal((await fleet.heartbeats())[0]?.listeners[0]?.error, error);
  });
  await foreign.close();
  await waitForListenerReport(proxy, { bound: true, listening: true, error: null });
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('ours');
  assert.equal((await client.take(4)).toString(), 'ours');
});

test('a process that shares its port with reusePort is detected as well', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await using _foreign = await echoServer({ host: fleet.addressOf(), port: PORT, reusePort: true });
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  assert.match(String((await waitForListenerReport(proxy, { bound: false })).error), /in use/);
});

test('an address that this host does not have is reported', async () => {
  await using fleet = await startFleet({ addresses: { a: '192.0.2.1' } });
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  assert.match(
    String((await waitForListenerReport(proxy, { bound: false })).error),
    /192\.0\.2\.1:8080: this host has no such address/,
  );
  assert.deepEqual(proxy.view().addresses, []);
});

test('a change of endpoints keeps open connections and sends new ones to the new endpoint', async () => {
  await using fleet = await startFleet();
  await using old = await echoServer();
  await using next = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(old)]));
  await using first = await connectClient({ host: fleet.addressOf(), port: PORT });
  await first.send('1');
  await first.take(1);
  await fleet.serve(webService([endpointOf(next)]));
  await eventually(async () => {
    await using probe = await connectClient({ host: fleet.addressOf(), port: PORT });
    await probe.send('2');
    await probe.take(1);
    assert.ok(next.acceptedConnections > 0);
  });
  await first.send('3');
  assert.equal((await first.take(1)).toString(), '3');
  assert.equal(outcomesFor(proxy)?.['reset-by-endpoint'], undefined);
});

test('a removed Service closes its listener, keeps its connections, and still reports its usage', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(
    fleet,
    webService([endpointOf(backend)]),
    webService([endpointOf(backend)], { name: 'other', port: 9_090 }),
  );
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('before');
  await client.take(6);
  await fleet.serve(webService([endpointOf(backend)], { name: 'other', port: 9_090 }));
  let opened = 1;
  const connect = async (): Promise<void> => {
    await using _open = await connectClient({ host: fleet.addressOf(), port: PORT });
    opened += 1;
  };
  await eventually(() => assert.rejects(connect(), REFUSED));
  await client.send('after');
  assert.equal((await client.take(5)).toString(), 'after');
  await client.end();
  await client.ended;
  await eventually(async () => {
    const { connections = 0, ...usage } = (await fleet.usage()).web ?? {};
    assert.deepEqual(usage, { receivedBytes: 11, sentBytes: 11, requests: 0 });
    // A connection may be accepted while the listener closes, and is then not counted.
    assert.ok(connections >= 1 && connections <= opened, `${connections} of ${opened} connections`);
  });
  await eventually(() =>
    assert.deepEqual(
      proxy.view().services.map(({ name }) => name),
      ['other'],
    ),
  );
});

test('a port given to another Service is confirmed without being closed', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  await fleet.serve(webService([endpointOf(backend)], { name: 'successor', namespace: 'games' }));
  await waitForListenerReport(proxy, {
    bound: true,
    listening: true,
    service: uidOf({ name: 'successor', namespace: 'games' }),
  });
  await waitForTable(fleet, proxy);
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('x');
  await client.take(1);
  const counted = proxy.view().services.find(({ name }) => name === 'successor');
  assert.deepEqual(
    { tenant: counted?.tenant, connections: counted?.counters.connections },
    { tenant: 'games', connections: 1 },
  );
});
