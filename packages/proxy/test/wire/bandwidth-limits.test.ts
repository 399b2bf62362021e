// Only lower bounds of time: a busy machine takes longer, never less. The law of the meters tells the upper ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_SERVICE_SETTINGS, type TenantLimits } from '@weir/model';
import {
  type ByteCountingServer,
  connectClient,
  discardServer,
  echoServer,
  eventually,
  patternServer,
} from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, startServing, webService } from '../fixtures/services.ts';

const RATE = 16_000_000;
const BYTES_PER_SECOND = RATE / 8;
/** What may be saved up in 50 ms, and what each stream reads once more before it is stopped. */
const BURST = BYTES_PER_SECOND * 0.05;
const SLICE = 102_400;
const TRANSFER = 3_000_000;
const PATIENT = { timeoutMs: 60_000 };

test('what clients send is slowed down to the limit of the tenant over connections and workers, and arrives whole', async () => {
  await using fleet = await startFleet();
  await using sink = await discardServer();
  await serve(fleet, sink, { inBitsPerSecond: RATE });
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: 3 }, async () => {
      await using client = await connectClient({ host: fleet.addressOf(), port: PORT, ...PATIENT });
      await client.sendPattern({ bytes: TRANSFER / 3 });
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
    }),
  );
  assertSlow(startedAt, 3);
  assert.equal(sink.received, TRANSFER);
});

test('what clients get is, too', async () => {
  await using fleet = await startFleet();
  await using source = await patternServer({ bytes: TRANSFER / 2, seed: 7 });
  await serve(fleet, source, { outBitsPerSecond: RATE });
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: 2 }, async () => {
      await using client = await connectClient({ host: fleet.addressOf(), port: PORT, expectPattern: 7, ...PATIENT });
      assert.deepEqual(await client.ended, { kind: 'end' });
      assert.equal(client.received, TRANSFER / 2);
    }),
  );
  assertSlow(startedAt, 2);
});

test('the limit of a Service holds where its tenant has none, and other Services are not slowed down', async () => {
  await using fleet = await startFleet();
  await using sink = await discardServer();
  await using echo = await echoServer();
  const limits = { ...DEFAULT_SERVICE_SETTINGS.limits, inBitsPerSecond: RATE };
  await startServing(
    fleet,
    webService([endpointOf(sink)], { settings: { limits } }),
    webService([endpointOf(echo)], { name: 'api', port: PORT + 1 }),
  );
  const startedAt = performance.now();
  await using slow = await connectClient({ host: fleet.addressOf(), port: PORT, ...PATIENT });
  const sending = slow.sendPattern({ bytes: TRANSFER });
  await using quick = await connectClient({ host: fleet.addressOf(), port: PORT + 1, ...PATIENT });
  for (let round = 0; round < 20; round += 1) {
    await quick.send('ping');
    await quick.take(4);
  }
  assert.ok(sink.received < TRANSFER, 'the other one was through before');
  await sending;
  await slow.end();
  await slow.ended;
  assertSlow(startedAt, 1);
  assert.equal(sink.received, TRANSFER);
});

test('a limit that is set while a connection is open holds for it, and one that is lifted lets it go', async () => {
  await using fleet = await startFleet();
  await using sink = await discardServer();
  const proxy = await serve(fleet, sink, {});
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT, ...PATIENT });
  await client.send('x');
  await eventually(() => assert.equal(sink.received, 1));
  const { revision } = proxy.view().applied ?? assert.fail();
  await limit(fleet, sink, { inBitsPerSecond: 0 });
  await eventually(() => assert.ok((proxy.view().applied?.revision ?? 0) > revision));
  // One read may be under way; what follows it is not read.
  await client.send('y');
  await eventually(() => assert.equal(sink.received, 2));
  await client.send('z'.repeat(1_000));
  assert.equal(sink.received, 2);
  await limit(fleet, sink, {});
  await eventually(() => assert.equal(sink.received, 1_002));
});

test('one that is held by a limit is not idle', async () => {
  await using fleet = await startFleet();
  await using sink = await discardServer();
  fleet.limit('shop', { inBitsPerSecond: 6_000 });
  const proxy = await startServing(fleet, webService([endpointOf(sink)], { settings: { idleTimeoutMs: 1 } }));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT, ...PATIENT });
  // A first slice of 2 KiB is paid for in almost three seconds, and idle are those that say nothing for two.
  await client.sendPattern({ bytes: 2_500 });
  await eventually(() => assert.equal(sink.received, 2_500));
  assert.equal(outcomesFor(proxy)?.['idle-timeout'], undefined);
});

test('one that a limit of 0 holds ends by the idle timeout: nobody would ever see that its client has gone', async () => {
  await using fleet = await startFleet();
  await using sink = await discardServer();
  fleet.limit('shop', { inBitsPerSecond: 0 });
  const proxy = await startServing(fleet, webService([endpointOf(sink)], { settings: { idleTimeoutMs: 1 } }));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT, ...PATIENT });
  await client.send('x'.repeat(4_000));
  await eventually(() => assert.equal(outcomesFor(proxy)?.['idle-timeout'], 1));
});

async function limit(fleet: Fleet, endpoint: ByteCountingServer, limits: TenantLimits): Promise<void> {
  fleet.limit('shop', limits);
  await fleet.serve(webService([endpointOf(endpoint)]));
}

async function serve(fleet: Fleet, endpoint: ByteCountingServer, limits: TenantLimits): Promise<RunningProxy> {
  await limit(fleet, endpoint, limits);
  const proxy = await fleet.proxy({ workers: 2 });
  await proxy.ready;
  return proxy;
}

function assertSlow(startedAt: number, streams: number): void {
  const seconds = (performance.now() - startedAt) / 1_000;
  const least = (TRANSFER - BURST - streams * SLICE) / BYTES_PER_SECOND;
  assert.ok(seconds >= least, `${seconds} s of at least ${least} s`);
}
