// Tests UDP in a complete proxy: listeners, workers and takeover.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { test } from 'node:test';
import type { ListenerReport } from '@weir/model';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { FAILING_WORKER, failWorkers } from '../fixtures/failing-worker.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, startServing, webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';
import { type UdpClient, type UdpEndpoint, udpClient, udpEcho } from '../fixtures/udp-sockets.ts';

for (const [transport, workerEntry] of [['system calls', undefined]] as const) {
  test(`${transport}: TCP and UDP on one port number are two listeners with separate counters`, async () => {
    await using fleet = await startFleet({ workerEntry });
    await using tcp = await echoServer();
    await using udp = await udpEcho('re: ');
    const proxy = await startServing(fleet, webService([endpointOf(tcp)]), voice([udp]));
    const at = { host: fleet.addressOf(), port: PORT };
    await using stream = await connectClient(at);
    await stream.send('by TCP');
    assert.equal((await stream.take(6)).toString(), 'by TCP');
    await using client = await udpClient(at);
    assert.equal(await client.ask('by UDP'), 're: by UDP');
    await reportOf(proxy, { bound: true, listening: true, error: null });
    await stream.end();
    await stream.ended;
    await proxy.close({ drainMs: 0 });
    const usage = await fleet.usage();
    assert.deepEqual(usage.web, { receivedBytes: 6, sentBytes: 6, connections: 1, requests: 0 });
    assert.deepEqual(usage.voice, { receivedBytes: 6, sentBytes: 10, connections: 1, requests: 0 });
  });

  test(`${transport}: without an endpoint the kernel refuses clients, the port stays allocated, and a new endpoint serves`, async () => {
    await using fleet = await startFleet({ workerEntry });
    await using echo = await udpEcho();
    const proxy = await startServing(fleet, voice([echo]));
    await using client = await udpClient({ host: fleet.addressOf(), port: PORT });
    await client.ask('x');
    await fleet.serve(voice([]));
    await reportOf(proxy, { bound: true, listening: false, error: null });
    await client.send('y');
    await assert.rejects(client.take(), { code: 'ECONNREFUSED' });
    await fleet.serve(voice([echo]));
    await reportOf(proxy, { bound: true, listening: true });
    assert.equal(await client.ask('z'), 'z');
  });

  test(`${transport}: a suspension drops flows and closes the listener, and lifting it serves again`, async () => {
    await using fleet = await startFleet({ workerEntry });
    await using echo = await udpEcho();
    const proxy = await startServing(fleet, voice([echo]));
    await using client = await udpClient({ host: fleet.addressOf(), port: PORT });
    await client.ask('x');
    await fleet.cutOff({ kind: 'tenant', tenant: 'shop' }, 'abuse');
    await reportOf(proxy, { bound: true, listening: false });
    await client.send('y');
    await assert.rejects(client.take(), { code: 'ECONNREFUSED' });
    assert.deepEqual(outcomesFor(proxy, 'voice'), { 'cut-off': 1 });
    await fleet.store.suspensions.remove('abuse');
    await reportOf(proxy, { bound: true, listening: true });
    assert.equal(await client.ask('z'), 'z');
  });

  test(`${transport}: a port of another process is reported, and opened when it is free`, async () => {
    await using fleet = await startFleet({ workerEntry });
    await using echo = await udpEcho();
    const other = createSocket('udp4').bind(PORT, fleet.addressOf());
    await once(other, 'listening');
    const proxy = await startServing(fleet, voice([echo]));
    const { error } = await reportOf(proxy, { bound: false, listening: false });
    assert.match(error ?? '', /stop that process/);
    await new Promise<void>((done) => other.close(done));
    await reportOf(proxy, { bound: true, listening: true, error: null });
  });

  test(`${transport}: a successor sends each client to the endpoint that it had before`, async () => {
    await using fleet = await startFleet({ workerEntry });
    await using one = await udpEcho('one');
    await using two = await udpEcho('two');
    const old = await startServing(fleet, voice([one, two]));
    const at = { host: fleet.addressOf(), port: PORT };
    const clients = await Promise.all(Array.from({ length: 20 }, () => udpClient(at)));
    await using _closing = { [Symbol.asyncDispose]: async () => void (await Promise.all(clients.map(close))) };
    const before = await Promise.all(clients.map((client) => client.ask('')));
    const next = await fleet.proxy();
    const closing = old.close({ drainMs: 5_000 });
    await next.ready;
    await closing;
    await reportOf(next, { bound: true, listening: true });
    assert.deepEqual(await Promise.all(clients.map((client) => client.ask(''))), before);
  });
}

test('replacing one of two workers keeps endpoint and source port of the other worker’s flows', async () => {
  const node = randomUUID();
  await using fleet = await startFleet({ nodes: [node] });
  await using one = await udpEcho('one');
  await using two = await udpEcho('two');
  await fleet.serve(voice([one, two]));
  const proxy = await fleet.proxy({ node, workers: 2, workerEntry: FAILING_WORKER });
  await proxy.ready;
  const at = { host: fleet.addressOf(node), port: PORT };
  const clients = await Promise.all(Array.from({ length: 40 }, () => udpClient(at)));
  await using _closing = { [Symbol.asyncDispose]: async () => void (await Promise.all(clients.map(close))) };
  const before = await Promise.all(clients.map((client) => client.ask('')));
  failWorkers(node, 'throw', 1);
  await eventually(() => assert.equal(outcomesFor(proxy, 'voice')?.internal !== undefined, true));
  await eventually(() => assert.equal(proxy.view().workers, 2));
  await reportOf(proxy, { bound: true, listening: true });
  for (let round = 0; round < 3; round += 1) {
    assert.deepEqual(await Promise.all(clients.map((client) => client.ask(''))), before);
  }
  const lost = outcomesFor(proxy, 'voice')?.internal ?? 0;
  assert.ok(lost > 0 && lost < 40, `${lost} of 40 were of the worker that ended`);
  // Only the flows of the replaced worker have new source ports.
  assert.equal(one.peers.length + two.peers.length, 40 + lost);
});

function voice(endpoints: readonly UdpEndpoint[]): TestService {
  return { name: 'voice', protocol: 'UDP', port: PORT, endpoints: endpoints.map(({ endpoint }) => endpoint) };
}

async function reportOf(proxy: RunningProxy, wanted: Partial<ListenerReport>): Promise<ListenerReport> {
  return eventually(() => {
    const report = proxy.view().listeners.find(({ id }) => id.endsWith(`/UDP/${PORT}`));
    assert.ok(report !== undefined);
    for (const [key, value] of Object.entries(wanted)) assert.equal(report[key as keyof ListenerReport], value);
    return report;
  });
}

async function close(client: UdpClient): Promise<void> {
  await client[Symbol.asyncDispose]();
}
