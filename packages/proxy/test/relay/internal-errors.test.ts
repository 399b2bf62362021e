import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer } from '@weir/testkit';
import { ACTIVE } from '../../src/metering/counters.ts';
import type { Outcome } from '../../src/metering/outcome.ts';
import { netTransport } from '../../src/transport/tcp/net-transport.ts';
import type { TcpTransport } from '../../src/transport/tcp-transport.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

test('a throw ends the connection in which it happens, and no other connection', async () => {
  await using backend = await echoServer();
  let defects = 0;
  using worker = await startWorkerInTest(webService([endpointOf(backend)]), {
    transport: transportThrowingOn('write', () => defects-- > 0),
  });
  await using healthy = await connectClient(worker);
  await healthy.send('a');
  await healthy.take(1);
  defects = 1;
  await using failing = await connectClient(worker);
  await failing.send('b');
  assert.deepEqual(await failing.ended, { kind: 'error', code: 'ECONNRESET' });
  await healthy.send('c');
  assert.equal((await healthy.take(1)).toString(), 'c');
  assert.deepEqual(worker.outcomes(), { internal: 1 });
  assert.equal(worker.row[ACTIVE], 1);
  assert.match(String(worker.reported), /a defect/);
});

const ENDS: readonly { readonly name: string; end(worker: WorkerInTest): void; readonly outcome: Outcome }[] = [
  { name: 'terminated', end: (worker) => worker.apply({ kind: 'terminate', outcome: 'drained' }), outcome: 'drained' },
  { name: 'past their deadline', end: (worker) => worker.tick(605), outcome: 'idle-timeout' },
];

for (const { name, end, outcome } of ENDS) {
  test(`a connection that throws does not prevent the end of others that are ${name}`, async () => {
    await using backend = await echoServer();
    let defects = 1;
    const transport = transportThrowingOn('reset', () => defects-- > 0);
    using worker = await startWorkerInTest(webService([endpointOf(backend)]), { transport });
    await using one = await connectClient(worker);
    await using other = await connectClient(worker);
    for (const client of [one, other]) {
      await client.send('a');
      await client.take(1);
    }
    end(worker);
    for (const client of [one, other]) assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    assert.deepEqual(worker.outcomes(), { [outcome]: 2 });
    assert.equal(worker.reported.length, 1);
    assert.equal(worker.row[ACTIVE], 0, 'both connections are no longer active');
  });
}

for (const { name, options } of [
  { name: 'without preread', options: {} },
  { name: 'with preread', options: { trustProxyProtocol: ['127.0.0.0/8'] } },
]) {
  test(`a client ${name} whose stream throws on accept is released and not active`, async () => {
    await using backend = await echoServer();
    let defects = 1;
    const transport = transportWithFailingAccept(() => defects-- > 0);
    using worker = await startWorkerInTest(webService([endpointOf(backend)]), { transport, ...options });
    // `connectClient` rejects if the reset arrives before the client sees the connection as connected.
    const ended = await connectClient(worker).then(
      (client) => client.ended,
      ({ code }) => ({ kind: 'error', code }),
    );
    assert.deepEqual(ended, { kind: 'error', code: 'ECONNRESET' });
    assert.deepEqual(worker.outcomes(), { internal: 1 });
    assert.equal(worker.row[ACTIVE], 0);
    worker.tick(605);
    assert.deepEqual(worker.outcomes(), { internal: 1 }, 'no timeout ends it a second time');
  });
}

/** Returns a transport whose accepted streams throw from `accept` when `shouldThrow` returns true. */
function transportWithFailingAccept(shouldThrow: () => boolean): TcpTransport {
  return {
    ...netTransport,
    listen: (at, events) =>
      netTransport.listen(at, {
        onListening: () => events.onListening(),
        onFailed: (code) => events.onFailed(code),
        onAcceptError: (code) => events.onAcceptError(code),
        onConnection(stream) {
          const original = stream.accept.bind(stream);
          const accept: typeof original = (owner) => {
            if (shouldThrow()) throw new Error('a defect');
            original(owner);
          };
          events.onConnection(Object.assign(stream, { accept }));
        },
      }),
  };
}

/** Returns a transport whose streams to endpoints throw from the method `where` when `shouldThrow` returns true. */
function transportThrowingOn(where: 'write' | 'reset', shouldThrow: () => boolean): TcpTransport {
  return {
    ...netTransport,
    connect(to, events) {
      const stream = netTransport.connect(to, events);
      const original = stream[where].bind(stream) as (bytes: Uint8Array) => number;
      return Object.assign(stream, {
        [where](bytes: Uint8Array): number {
          if (shouldThrow()) throw new Error('a defect');
          return original(bytes);
        },
      });
    },
  };
}
