// Small writes in a turn of the event loop that handles several events: `SendBatch` sends them at the end of the turn.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connectClient, type TestClient } from '@weir/testkit';
import type { EpollStream } from '../../../src/transport/tcp/epoll-stream.ts';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import type { AcceptedStream, TcpStream } from '../../../src/transport/tcp-transport.ts';
import { type AcceptedConnection, startTestListener } from './test-listener.ts';

/** Enough events for a batch. */
const CLIENTS = 8;
/** More streams than a batch has. */
const MANY_CLIENTS = 150;
/** Longer than the part of a stream in the batch. */
const LONG = 'x'.repeat(10_000);

describe('small writes in a busy turn', () => {
  test('wait until its end, count as unacknowledged, and do not ask the writer to wait', async () => {
    await inBusyTurn(CLIENTS, {
      act(stream) {
        stream.write(Buffer.from('one'));
        stream.write(Buffer.from('two'));
        const { queuedBytes, awaitsDrain } = stream;
        assert.deepEqual({ queuedBytes, awaitsDrain }, { queuedBytes: 0, awaitsDrain: false });
        assert.equal(stream.unacknowledgedBytes(), 6);
        assert.ok(isBatched(stream));
      },
      async check(client, { stream }) {
        assert.equal((await client.take(6)).toString(), 'onetwo');
        assert.ok(!isBatched(stream));
      },
    });
  });

  test('arrive in the order of the writes, before and after longer writes', async () => {
    const expected = `first${LONG}second${LONG}third`;
    await inBusyTurn(CLIENTS, {
      act(stream) {
        for (const part of ['first', LONG, 'second', LONG, 'third']) stream.write(Buffer.from(part));
      },
      check: async (client) => assert.equal((await client.take(expected.length)).toString(), expected),
    });
  });

  test('arrive when they fill the batch of the stream', async () => {
    const parts = Array.from({ length: 100 }, (_, index) => `${index}`.padStart(100, '.'));
    await inBusyTurn(CLIENTS, {
      act(stream) {
        for (const part of parts) stream.write(Buffer.from(part));
      },
      check: async (client) => assert.equal((await client.take(10_000)).toString(), parts.join('')),
    });
  });

  test('arrive before the FIN', async () => {
    await inBusyTurn(CLIENTS, {
      act(stream) {
        stream.write(Buffer.from('last'));
        stream.shutdown();
      },
      async check(client) {
        assert.equal((await client.take(4)).toString(), 'last');
        assert.deepEqual(await client.ended, { kind: 'end' });
      },
    });
  });

  test('arrive before the RST of a stream that is reset in the same turn', async () => {
    await inBusyTurn(CLIENTS, {
      act(stream) {
        stream.write(Buffer.from('last'));
        stream.reset();
        assert.ok(!isBatched(stream));
      },
      async check(client) {
        assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
        assert.equal(client.received, 4);
      },
    });
  });

  test('arrive at more clients than one batch holds', async () => {
    await inBusyTurn(MANY_CLIENTS, {
      act: (stream, index) => stream.write(Buffer.from(`${index}`.padStart(4, '.'))),
      check: async (client, _connection, index) =>
        assert.equal((await client.take(4)).toString(), `${index}`.padStart(4, '.')),
    });
  });
});

test('a write in a turn with few events is sent at once', async () => {
  await inBusyTurn(1, {
    act(stream) {
      stream.write(Buffer.from('now'));
      assert.ok(!isBatched(stream));
    },
    check: async (client) => assert.equal((await client.take(3)).toString(), 'now'),
  });
});

function isBatched(stream: TcpStream): boolean {
  return (stream as EpollStream).batchSlot >= 0;
}

interface Turn {
  /** Called with each stream while the event loop handles its events. */
  act(stream: AcceptedStream, index: number): void;
  check(client: TestClient, connection: AcceptedConnection, index: number): Promise<void>;
}

/** Lets all clients send a byte before the event loop handles the first of them, so that one turn has all their events. */
async function inBusyTurn(count: number, { act, check }: Turn): Promise<void> {
  using listener = await startTestListener(epollTransport);
  const connections: AcceptedConnection[] = [];
  const clients: TestClient[] = [];
  try {
    for (let index = 0; index < count; index += 1) {
      const accepted = listener.next();
      clients.push(await connectClient(listener));
      const connection = await accepted;
      connection.events.onBytes = (stream: TcpStream) => act(stream as AcceptedStream, index);
      connections.push(connection);
    }
    const sent = clients.map((client) => client.send('.'));
    await Promise.all(sent);
    for (const [index, client] of clients.entries()) {
      const connection = connections[index] as AcceptedConnection;
      await connection.events.until(() => connection.events.received > 0);
      assert.ifError(connection.events.thrown);
      await check(client, connection, index);
    }
  } finally {
    for (const client of clients) client.reset();
  }
}
