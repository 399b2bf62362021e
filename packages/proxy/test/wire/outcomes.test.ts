// Tests every outcome of a connection that is not relayed, and what its client sees.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connectClient, echoServer, eventually, freePort } from '@weir/testkit';
import { connectAndAwaitEnd } from '../fixtures/connection-ending.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { NET_WORKER } from '../fixtures/net-worker.ts';
import { endpointOf, outcomesFor, startServing, webService } from '../fixtures/services.ts';
import { unresponsiveEndpoint } from '../fixtures/unresponsive-endpoint.ts';

const RESET = { kind: 'error', code: 'ECONNRESET' };

for (const [transport, workerEntry] of [
  ['system calls', undefined],
  ['public net', NET_WORKER],
] as const) {
  describe(transport, () => {
    test('resets a client whose endpoints all refuse', async () => {
      await using fleet = await startFleet({ workerEntry });
      const proxy = await startServing(fleet, webService([{ address: '127.0.0.1', port: await freePort() }]));
      assert.deepEqual(await connectAndAwaitEnd({ host: fleet.addressOf(), port: PORT }), RESET);
      await eventually(() => assert.deepEqual(outcomesFor(proxy), { 'connect-failed': 1 }));
    });

    test('tries other endpoints when one refuses, without losing data of the client', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using backend = await echoServer();
      const dead = await Promise.all(Array.from({ length: 3 }, () => freePort()));
      const proxy = await startServing(
        fleet,
        webService([...dead.map((port) => ({ address: '127.0.0.1', port })), endpointOf(backend)]),
      );
      for (let round = 0; round < 10; round += 1) {
        await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
        await client.send(`round ${round}`);
        assert.equal((await client.take(7)).toString(), `round ${round}`);
        await client.end();
        await client.ended;
      }
      await eventually(() => assert.deepEqual(outcomesFor(proxy), { completed: 10 }));
    });

    test('tries another endpoint after the connect timeout', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using unresponsive = await unresponsiveEndpoint();
      await using backend = await echoServer();
      const settings = { algorithm: 'round-robin', connectTimeoutMs: 200 } as const;
      const proxy = await startServing(fleet, webService([unresponsive.endpoint, endpointOf(backend)], { settings }));
      // With round robin, one of the two clients is sent to the unresponsive endpoint first.
      for (let round = 0; round < 2; round += 1) {
        await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
        await client.send('hello');
        assert.equal((await client.take(5)).toString(), 'hello');
        await client.end();
        await client.ended;
      }
      await eventually(() => assert.deepEqual(outcomesFor(proxy), { completed: 2 }));
    });

    test('gives up connecting to an endpoint as soon as it is removed', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using unresponsive = await unresponsiveEndpoint();
      await using backend = await echoServer();
      const settings = { connectTimeoutMs: 60_000 };
      const proxy = await startServing(fleet, webService([unresponsive.endpoint], { settings }));
      await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
      await client.send('hello');
      await eventually(() => assert.equal(proxy.view().services[0]?.counters.connections, 1));
      await fleet.serve(webService([endpointOf(backend)], { settings }));
      assert.equal((await client.take(5)).toString(), 'hello');
      await client.end();
      await client.ended;
      await eventually(() => assert.deepEqual(outcomesFor(proxy), { completed: 1 }));
    });

    test('moves clients from a removed endpoint to all new endpoints in turn', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using unresponsive = await unresponsiveEndpoint();
      await using one = await echoServer();
      await using other = await echoServer();
      const settings = { algorithm: 'round-robin', connectTimeoutMs: 60_000 } as const;
      const proxy = await startServing(fleet, webService([unresponsive.endpoint], { settings }));
      await using stack = new AsyncDisposableStack();
      const clients = await Promise.all(
        Array.from({ length: 4 }, () => connectClient({ host: fleet.addressOf(), port: PORT })),
      );
      for (const client of clients) {
        stack.use(client);
        await client.send('hello');
      }
      await eventually(() => assert.equal(proxy.view().services[0]?.counters.connections, 4));
      await fleet.serve(webService([endpointOf(one), endpointOf(other)], { settings }));
      for (const client of clients) assert.equal((await client.take(5)).toString(), 'hello');
      assert.deepEqual([one.received, other.received], [10, 10]);
    });

    test('resets a client whose only endpoint does not answer', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using unresponsive = await unresponsiveEndpoint();
      const proxy = await startServing(
        fleet,
        webService([unresponsive.endpoint], { settings: { connectTimeoutMs: 200 } }),
      );
      assert.deepEqual(await connectAndAwaitEnd({ host: fleet.addressOf(), port: PORT }), RESET);
      await eventually(() => assert.deepEqual(outcomesFor(proxy), { 'connect-timeout': 1 }));
    });

    test('resets idle connections on both sides, and no active ones', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using backend = await echoServer();
      const proxy = await startServing(
        fleet,
        webService([endpointOf(backend)], { settings: { idleTimeoutMs: 1_000 } }),
      );
      await using idle = await connectClient({ host: fleet.addressOf(), port: PORT });
      await using busy = await connectClient({ host: fleet.addressOf(), port: PORT });
      const talking = (async (): Promise<void> => {
        for (;;) {
          await busy.send('x');
          await busy.take(1);
          const isOver = await Promise.race([idle.ended.then(() => true), pause(100)]);
          if (isOver) return;
        }
      })();
      assert.deepEqual(await idle.ended, RESET);
      await talking;
      await eventually(() => assert.equal(backend.openConnections, 1));
      assert.deepEqual(outcomesFor(proxy), { 'idle-timeout': 1 });
    });

    test('resets a client outside the source ranges before it reaches an endpoint', async () => {
      await using fleet = await startFleet({ workerEntry });
      await using backend = await echoServer();
      const proxy = await startServing(
        fleet,
        webService([endpointOf(backend)], { settings: { sourceRanges: ['127.0.0.8/32'] } }),
      );
      const outsider = { host: fleet.addressOf(), port: PORT, localAddress: '127.0.0.9' };
      assert.deepEqual(await connectAndAwaitEnd(outsider), RESET);
      await using friend = await connectClient({ host: fleet.addressOf(), port: PORT, localAddress: '127.0.0.8' });
      await friend.send('hi');
      assert.equal((await friend.take(2)).toString(), 'hi');
      assert.equal(backend.acceptedConnections, 1);
      assert.deepEqual(outcomesFor(proxy), { 'source-range': 1 });
      assert.equal(proxy.view().services[0]?.counters.connections, 1);
    });
  });
}

/** Waits for `ms` milliseconds, the time between two messages of an active client. */
function pause(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms));
}
