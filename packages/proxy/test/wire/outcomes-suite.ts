// Every way in which a connection can fail to be relayed, and what its client sees.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, freePort } from '@weir/testkit';
import { connectAndAwaitEnd } from '../fixtures/connection-ending.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, startServing, webService } from '../fixtures/services.ts';
import { unresponsiveEndpoint } from '../fixtures/unresponsive-endpoint.ts';

const RESET = { kind: 'error', code: 'ECONNRESET' };

/** With workers of this entry; undefined: with those of the product. */
export function outcomeTests(workerEntry?: URL): void {
  test('a client whose endpoints all refuse is reset', async () => {
    await using fleet = await startFleet({ workerEntry });
    const proxy = await startServing(fleet, webService([{ address: '127.0.0.1', port: await freePort() }]));
    assert.deepEqual(await connectAndAwaitEnd({ host: fleet.addressOf(), port: PORT }), RESET);
    await eventually(() => assert.deepEqual(outcomesFor(proxy), { 'connect-failed': 1 }));
  });

  test('when an endpoint refuses, the others are tried, and nothing of the client is lost', async () => {
    await using fleet = await startFleet({ workerEntry });
    await using backend = await echoServer();
    const dead = await Promise.all(Array.from({ length: 6 }, () => freePort()));
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

  test('an endpoint that does not answer is given up after the connect timeout, and another one tried', async () => {
    await using fleet = await startFleet({ workerEntry });
    await using deaf = await unresponsiveEndpoint();
    await using backend = await echoServer();
    const settings = { algorithm: 'round-robin', connectTimeoutMs: 200 } as const;
    const proxy = await startServing(fleet, webService([deaf.endpoint, endpointOf(backend)], { settings }));
    // In turn: one of the two meets the deaf one first.
    for (let round = 0; round < 2; round += 1) {
      await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
      await client.send('hello');
      assert.equal((await client.take(5)).toString(), 'hello');
      await client.end();
      await client.ended;
    }
    await eventually(() => assert.deepEqual(outcomesFor(proxy), { completed: 2 }));
  });

  test('an endpoint that does not answer is given up as soon as it has left the Service', async () => {
    await using fleet = await startFleet({ workerEntry });
    await using deaf = await unresponsiveEndpoint();
    await using backend = await echoServer();
    const settings = { connectTimeoutMs: 60_000 };
    const proxy = await startServing(fleet, webService([deaf.endpoint], { settings }));
    await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
    await client.send('hello');
    await eventually(() => assert.equal(proxy.view().services[0]?.counters.connections, 1));
    await fleet.serve(webService([endpointOf(backend)], { settings }));
    assert.equal((await client.take(5)).toString(), 'hello');
    await client.end();
    await client.ended;
    await eventually(() => assert.deepEqual(outcomesFor(proxy), { completed: 1 }));
  });

  test('those who waited for an endpoint that left go to all that there are, each in its turn', async () => {
    await using fleet = await startFleet({ workerEntry });
    await using deaf = await unresponsiveEndpoint();
    await using one = await echoServer();
    await using other = await echoServer();
    const settings = { algorithm: 'round-robin', connectTimeoutMs: 60_000 } as const;
    const proxy = await startServing(fleet, webService([deaf.endpoint], { settings }));
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

  test('a client whose only endpoint does not answer is reset', async () => {
    await using fleet = await startFleet({ workerEntry });
    await using deaf = await unresponsiveEndpoint();
    const proxy = await startServing(fleet, webService([deaf.endpoint], { settings: { connectTimeoutMs: 200 } }));
    assert.deepEqual(await connectAndAwaitEnd({ host: fleet.addressOf(), port: PORT }), RESET);
    await eventually(() => assert.deepEqual(outcomesFor(proxy), { 'connect-timeout': 1 }));
  });

  test('a connection on which nothing happens is reset on both sides; one that is used is not', async () => {
    await using fleet = await startFleet({ workerEntry });
    await using backend = await echoServer();
    const proxy = await startServing(fleet, webService([endpointOf(backend)], { settings: { idleTimeoutMs: 1_000 } }));
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

  test('a client outside the source ranges is reset before an endpoint hears of it', async () => {
    await using fleet = await startFleet({ workerEntry });
    await using backend = await echoServer();
    const proxy = await startServing(
      fleet,
      webService([endpointOf(backend)], { settings: { sourceRanges: ['127.0.0.8/32'] } }),
    );
    const stranger = { host: fleet.addressOf(), port: PORT, localAddress: '127.0.0.9' };
    assert.deepEqual(await connectAndAwaitEnd(stranger), RESET);
    await using friend = await connectClient({ host: fleet.addressOf(), port: PORT, localAddress: '127.0.0.8' });
    await friend.send('hi');
    assert.equal((await friend.take(2)).toString(), 'hi');
    assert.equal(backend.acceptedConnections, 1);
    assert.deepEqual(outcomesFor(proxy), { 'source-range': 1 });
    assert.equal(proxy.view().services[0]?.counters.connections, 1);
  });
}

/** The rhythm of a busy client. */
function pause(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms));
}
