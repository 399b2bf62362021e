// Tests data and ends of connections through one proxy, as client and endpoint see them.
import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { type ByteCountingServer, connectClient, echoServer, eventually, patternServer } from '@weir/testkit';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { NET_WORKER } from '../fixtures/net-worker.ts';
import { scriptedEndpoint } from '../fixtures/scripted-endpoint.ts';
import type { TestService } from '../fixtures/tables.ts';

const PORT = 8_080;

for (const [transport, workerEntry] of [
  ['system calls', undefined],
  ['public net', NET_WORKER],
] as const) {
  describe(transport, () => {
    test('relays a connection to an endpoint until FIN in both directions, and counts both', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using backend = await echoServer();
      const proxy = await servedBy(fleet, backend);
      await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
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

    test('counts exactly what many clients count themselves', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using backend = await echoServer();
      const proxy = await servedBy(fleet, backend, { workers: 2 });
      let sent = 0;
      let received = 0;
      const one = async (index: number): Promise<void> => {
        const bytes = 1 + ((index * 7_919) % 40_000);
        await using client = await connectClient({ host: fleet.addressOf(), port: PORT, expectPattern: index % 256 });
        await client.sendPattern({ bytes, seed: index % 256 });
        await client.end();
        await client.ended;
        sent += bytes;
        received += client.received;
      };
      for (let batch = 0; batch < 10; batch += 1) {
        await Promise.all(Array.from({ length: 30 }, (_, index) => one(batch * 30 + index)));
      }
      assert.equal(received, sent);
      await proxy.close();
      assert.deepEqual(await fleet.usage(), {
        web: { receivedBytes: sent, sentBytes: received, connections: 300, requests: 0 },
      });
    });

    test('relays in one direction after the FIN of the other', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using backend = await scriptedEndpoint();
      await servedBy(fleet, backend);
      await using first = await connectClient({ host: fleet.addressOf(), port: PORT });
      const firstAtEndpoint = await backend.next();
      await first.end();
      assert.deepEqual(await firstAtEndpoint.ended, { kind: 'end' });
      await firstAtEndpoint.send('late reply!');
      assert.equal((await first.take(11)).toString(), 'late reply!');
      await firstAtEndpoint.end();
      assert.deepEqual(await first.ended, { kind: 'end' });

      await using second = await connectClient({ host: fleet.addressOf(), port: PORT });
      const secondAtEndpoint = await backend.next();
      await secondAtEndpoint.end();
      assert.deepEqual(await second.ended, { kind: 'end' });
      await second.send('late question');
      assert.equal((await secondAtEndpoint.take(13)).toString(), 'late question');
      await second.end();
      assert.deepEqual(await secondAtEndpoint.ended, { kind: 'end' });
    });

    test('passes on a reset of either side, and counts which side reset', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using backend = await scriptedEndpoint();
      const proxy = await servedBy(fleet, backend);
      await using first = await connectClient({ host: fleet.addressOf(), port: PORT });
      const firstAtEndpoint = await backend.next();
      // After a byte has passed, both sides are connected, so a reset does not count as a failed connect.
      await first.send('1');
      await firstAtEndpoint.take(1);
      first.reset();
      assert.deepEqual(await firstAtEndpoint.ended, { kind: 'error', code: 'ECONNRESET' });

      await using second = await connectClient({ host: fleet.addressOf(), port: PORT });
      const secondAtEndpoint = await backend.next();
      await second.send('2');
      await secondAtEndpoint.take(1);
      secondAtEndpoint.reset();
      assert.deepEqual(await second.ended, { kind: 'error', code: 'ECONNRESET' });
      await eventually(() => {
        assert.deepEqual(proxy.view().services[0]?.outcomes, { 'reset-by-client': 1, 'reset-by-endpoint': 1 });
      });
    });

    test('slow readers hold up only their own connections and get only their own bytes', async () => {
      const bytes = 8_000_000;
      await using fleet = await startFleet({ workerEntry });
      const sources = await Promise.all(Array.from({ length: 14 }, (_, seed) => patternServer({ bytes, seed })));
      await fleet.serve(...sources.map((source, seed) => serviceOf(source, { name: `s${seed}`, port: PORT + seed })));
      const proxy = await fleet.proxy();
      await proxy.ready;
      const clients = await Promise.all(
        sources.map((_, seed) =>
          connectClient({ host: fleet.addressOf(), port: PORT + seed, expectPattern: seed, timeoutMs: 60_000 }),
        ),
      );
      for (const client of clients) client.pause();
      const [quick] = clients;
      assert.ok(quick);
      quick.resume();
      await quick.ended;
      assert.equal(quick.received, bytes);
      await Promise.all(
        clients.slice(1).map(async (client) => {
          for (let wanted = 777_777; wanted < bytes; wanted += 777_777) {
            client.resume();
            await client.waitForBytes(wanted);
            client.pause();
            await new Promise((resolve) => setImmediate(resolve));
          }
          client.resume();
          await client.ended;
          assert.equal(client.received, bytes);
        }),
      );
      await Promise.all([...clients, ...sources].map((each) => each.close()));
    });

    test('pauses a client that sends faster than its endpoint reads', async () => {
      await using fleet = await startFleet({ workerEntry });
      const readers: Socket[] = [];
      const server = createServer((socket) => readers.push(socket.pause()));
      await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
      const { port } = server.address() as { port: number };
      await fleet.serve({ name: 'web', port: PORT, endpoints: [{ address: '127.0.0.1', port }] });
      const proxy = await fleet.proxy();
      await proxy.ready;
      await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
      const chunk = Buffer.alloc(1_000_000);
      let isDone = false;
      const sending = (async (): Promise<void> => {
        // Sends 80 MB: more than the kernel buffers, which may hold 32 MB on each side.
        for (let index = 0; index < 80; index += 1) await client.send(chunk);
        isDone = true;
      })();
      const taken = await stable(() => proxy.view().services[0]?.counters.receivedBytes ?? 0);
      assert.ok(taken < 20_000_000 && !isDone, `${taken} bytes taken for a reader that does not read`);
      for (const reader of readers) reader.resume();
      await sending;
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
      server.close();
    });
  });
}

async function servedBy(
  fleet: Fleet,
  backend: Pick<ByteCountingServer, 'host' | 'port'>,
  options: Parameters<Fleet['proxy']>[0] = {},
): ReturnType<Fleet['proxy']> {
  await fleet.serve(serviceOf(backend));
  const proxy = await fleet.proxy(options);
  await proxy.ready;
  return proxy;
}

function serviceOf(
  { host, port }: Pick<ByteCountingServer, 'host' | 'port'>,
  over: Partial<TestService> = {},
): TestService {
  return { name: 'web', port: PORT, endpoints: [{ address: host, port }], ...over };
}

/** Waits until the value is above 0 and has stopped changing, and returns it. */
async function stable(value: () => number): Promise<number> {
  let last = -1;
  return eventually(
    () => {
      const now = value();
      const isStable = now > 0 && now === last;
      last = now;
      assert.ok(isStable);
      return now;
    },
    { intervalMs: 250 },
  );
}
