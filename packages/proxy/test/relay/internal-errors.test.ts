import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer } from '@weir/testkit';
import { ACTIVE } from '../../src/metering/counters.ts';
import type { Outcome } from '../../src/metering/outcome.ts';
import { netTransport } from '../../src/transport/tcp/net-transport.ts';
import type { TcpTransport } from '../../src/transport/tcp-transport.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

test('a throw in the handling of a connection ends that connection, and no other', async () => {
  await using backend = await echoServer();
  let bugs = 0;
  using worker = await startWorkerInTest(webService([endpointOf(backend)]), {
    transport: transportThrowingOn('write', () => bugs-- > 0),
  });
  await using healthy = await connectClient(worker);
  await healthy.send('a');
  await healthy.take(1);
  bugs = 1;
  await using unlucky = await connectClient(worker);
  await unlucky.send('b');
  assert.deepEqual(await unlucky.ended, { kind: 'error', code: 'ECONNRESET' });
  await healthy.send('c');
  assert.equal((await healthy.take(1)).toString(), 'c');
  assert.deepEqual(worker.outcomes(), { internal: 1 });
  assert.equal(worker.row[ACTIVE], 1);
  assert.match(String(worker.reported), /a bug/);
});

const ENDS: readonly { readonly name: string; end(worker: WorkerInTest): void; readonly outcome: Outcome }[] = [
  { name: 'severed', end: (worker) => worker.apply({ kind: 'terminate', outcome: 'drained' }), outcome: 'drained' },
  { name: 'past their deadline', end: (worker) => worker.tick(605), outcome: 'idle-timeout' },
];

for (const { name, end, outcome } of ENDS) {
  test(`of connections that are ${name} one that throws does not keep the others from being ended`, async () => {
    await using backend = await echoServer();
    let bugs = 1;
    const transport = transportThrowingOn('reset', () => bugs-- > 0);
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
    assert.equal(worker.row[ACTIVE], 0, 'its slot is free');
  });
}

for (const { name, options } of [
  { name: 'relayed at once', options: {} },
  { name: 'asked first who it is', options: { trustProxyProtocol: ['127.0.0.0/8'] } },
]) {
  test(`a client that cannot be taken over when it is to be ${name} leaves its place and its slot free`, async () => {
    await using backend = await echoServer();
    let bugs = 1;
    const transport = transportWithFailingAccept(() => bugs-- > 0);
    using worker = await startWorkerInTest(webService([endpointOf(backend)]), { transport, ...options });
    // The reset may come before the client knows that it is connected.
    const ended = await connectClient(worker).then(
      (client) => client.ended,
      ({ code }) => ({ kind: 'error', code }),
    );
    assert.deepEqual(ended, { kind: 'error', code: 'ECONNRESET' });
    assert.deepEqual(worker.outcomes(), { internal: 1 });
    assert.equal(worker.row[ACTIVE], 0);
    worker.tick(605);
    assert.deepEqual(worker.outcomes(), { internal: 1 }, 'nobody waits for it any more');
  });
}

/** A transport whose accepted streams throw when somebody takes them over, as often as it is asked for. */
function transportWithFailingAccept(strikes: () => boolean): TcpTransport {
  return {
    connect: netTransport.connect,
    listen: (at, events) =>
      netTransport.listen(at, {
        onListening: () => events.onListening(),
        onFailed: (code) => events.onFailed(code),
        onAcceptError: (code) => events.onAcceptError(code),
        onConnection(stream) {
          const right = stream.accept.bind(stream);
          const accept: typeof right = (owner) => {
            if (strikes()) throw new Error('a bug');
            right(owner);
          };
          events.onConnection(Object.assign(stream, { accept }));
        },
      }),
  };
}

/** A transport whose streams to endpoints throw when this is called, as often as it is asked for. */
function transportThrowingOn(where: 'write' | 'reset', strikes: () => boolean): TcpTransport {
  return {
    listen: netTransport.listen,
    connect(to, events) {
      const stream = netTransport.connect(to, events);
      const right = stream[where].bind(stream) as (bytes: Uint8Array) => number;
      return Object.assign(stream, {
        [where](bytes: Uint8Array): number {
          if (strikes()) throw new Error('a bug');
          return right(bytes);
        },
      });
    },
  };
}
