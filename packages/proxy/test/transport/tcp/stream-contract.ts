// The contract of a stream, for every transport.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { discardServer, echoServer, eventually, patternBytes, patternServer } from '@weir/testkit';
import type { TcpTransport, Turns } from '../../../src/transport/tcp-transport.ts';
import { testManySlowReaders } from './slow-readers.ts';
import { StreamRecorder } from './stream-recorder.ts';
import type { StreamSetup } from './stream-setup.ts';
import { startTestListener } from './test-listener.ts';

const MEGABYTE = 1_000_000;

export function streamContract(setup: StreamSetup): void {
  const { name, transport, connect } = setup;
  describe(`${name}: reading and writing`, () => {
    test('reads nothing before `readStart` and after `readStop`', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next({ reads: false });
      await using client = await connect({ host: listener.host, port: listener.port });
      const { stream, events } = await arrival;
      await client.send('first');
      await using other = await echoServer();
      await roundTrip(transport, other);
      assert.deepEqual([events.received, stream.isReading], [0, false]);
      stream.readStart();
      assert.equal(stream.isReading, true);
      await events.until(() => events.received === 5);
      stream.readStop();
      assert.equal(stream.isReading, false);
      await client.send('second');
      await roundTrip(transport, other);
      assert.equal(events.text, 'first');
      stream.readStart();
      await events.until(() => events.text === 'firstsecond');
    });

    test('queues bytes for a paused reader and drains without loss when it resumes', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connect({ host: listener.host, port: listener.port, expectPattern: 7 });
      client.pause();
      const { stream, events } = await arrival;
      const total = 24 * MEGABYTE;
      let written = 0;
      const pump = (): void => {
        while (written < total) {
          const length = Math.min(65_536, total - written);
          written += length;
          if (stream.write(patternBytes({ seed: 7, offset: written - length, length })) > 0) return;
        }
        stream.shutdown();
      };
      events.onDrained = pump;
      pump();
      assert.ok(stream.queuedBytes > 0 && written < total);
      client.resume();
      await client.ended;
      assert.equal(client.received, total);
      assert.ok(events.drains > 0);
    });

    test('delivers a chunk larger than any buffer, and lets the caller reuse the memory at once', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connect({ host: listener.host, port: listener.port, expectPattern: 3 });
      const { stream } = await arrival;
      const huge = patternBytes({ seed: 3, offset: 0, length: 8 * MEGABYTE });
      stream.write(huge);
      huge.fill(0);
      stream.shutdown();
      await client.ended;
      assert.equal(client.received, 8 * MEGABYTE);
    });

    test('keeps the order of small chunks in both directions', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connect({ host: listener.host, port: listener.port });
      const { stream, events } = await arrival;
      events.onBytes = (_, bytes) => {
        for (const byte of bytes) stream.write(Uint8Array.of(byte));
      };
      const text = Array.from({ length: 500 }, (_, index) => `${index};`).join('');
      for (const char of text) await client.send(char);
      assert.equal((await client.take(text.length)).toString(), text);
    });

    test('reads at most 256 KiB per turn while another stream reads', async () => {
      using listener = await startTestListener(transport);
      await using source = await patternServer({ bytes: 24 * MEGABYTE });
      const arrival = listener.next({ reads: false });
      await using client = await connect({ host: listener.host, port: listener.port });
      const { stream, events: accepted } = await arrival;
      const connected = new StreamRecorder();
      const largest = largestSharedRead(transport.turns, [accepted, connected]);
      void client.sendPattern({ bytes: 24 * MEGABYTE, chunk: 4 * MEGABYTE });
      const sourceStream = transport.connect({ address: source.host, port: source.port }, connected);
      await connected.until(() => connected.isConnected);
      stream.readStart();
      await accepted.until(() => accepted.received === 24 * MEGABYTE);
      await connected.until(() => connected.hasEnded);
      sourceStream.reset();
      assert.ok(largest() > 0 && largest() <= 262_144, `${largest()} bytes in one turn`);
    });

    test('keeps the bytes of slow readers apart', () => testManySlowReaders(setup));

    test('passes an exception of the owner to onThrow', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connect({ host: listener.host, port: listener.port });
      const { events } = await arrival;
      events.onBytes = () => {
        throw new Error('a bug');
      };
      await client.send('x');
      await events.until(() => events.thrown !== undefined);
      assert.match(String(events.thrown), /a bug/);
      assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    });

    test('passes an exception to the owner that got the stream before', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connect({ host: listener.host, port: listener.port });
      const { stream, events } = await arrival;
      const next = new StreamRecorder();
      events.onBytes = () => {
        stream.accept(next);
        throw new Error('a bug');
      };
      await client.send('x');
      await next.until(() => next.thrown !== undefined);
      assert.equal(events.thrown, undefined);
      assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    });
  });

  describe(`${name}: closing`, () => {
    test('writes after the FIN of the peer, and closes after both FINs', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connect({ host: listener.host, port: listener.port });
      const { stream, events } = await arrival;
      await client.end();
      await events.until(() => events.hasEnded);
      stream.write(Buffer.from('late'));
      stream.shutdown();
      assert.deepEqual(await client.ended, { kind: 'end' });
      assert.equal(client.buffered.toString(), 'late');
      await events.until(() => events.closed !== undefined);
      assert.deepEqual(events.closed, { code: undefined });
    });

    test('reads after its own FIN', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connect({ host: listener.host, port: listener.port });
      const { stream, events } = await arrival;
      stream.shutdown();
      assert.deepEqual(await client.ended, { kind: 'end' });
      await client.send('late');
      await client.end();
      await events.until(() => events.closed !== undefined);
      assert.equal(events.text, 'late');
      assert.deepEqual(events.closed, { code: undefined });
    });

    test('reports a reset by the peer as a failure, without `onEnd`', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connect({ host: listener.host, port: listener.port });
      const { events } = await arrival;
      client.reset();
      await events.until(() => events.closed !== undefined);
      assert.deepEqual({ ...events.closed, hasEnded: events.hasEnded }, { code: 'ECONNRESET', hasEnded: false });
    });

    test('resets the peer at once, whatever is queued', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connect({ host: listener.host, port: listener.port });
      client.pause();
      const { stream, events } = await arrival;
      stream.write(Buffer.alloc(24 * MEGABYTE));
      assert.ok(stream.queuedBytes > 0);
      stream.shutdown();
      stream.reset();
      client.resume();
      assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
      await events.until(() => events.closed !== undefined);
      assert.deepEqual(events.closed, { code: undefined });
    });

    test('keeps counting the bytes that a reset peer did not take as queued', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connect({ host: listener.host, port: listener.port });
      client.pause();
      const { stream, events } = await arrival;
      stream.write(Buffer.alloc(24 * MEGABYTE));
      const queued = stream.queuedBytes;
      client.reset();
      await events.until(() => events.closed !== undefined);
      assert.ok(queued > 0 && stream.queuedBytes === queued, `${stream.queuedBytes} of ${queued}`);
      assert.equal(stream.write(Buffer.alloc(10)), queued + 10);
    });

    test('resets its endpoint when a connected stream is reset', async () => {
      await using backend = await discardServer();
      const events = new StreamRecorder();
      const stream = transport.connect({ address: backend.host, port: backend.port }, events);
      await events.until(() => events.isConnected);
      assert.equal(backend.openConnections, 1);
      stream.reset();
      await events.until(() => events.closed !== undefined);
      await eventually(() => assert.equal(backend.openConnections, 0));
    });

    test('leaks no descriptor on a reset right after a FIN', async () => {
      using listener = await startTestListener(transport);
      const descriptors = (): number => readdirSync('/proc/self/fd').length;
      const before = descriptors();
      for (let round = 0; round < 20; round += 1) {
        const arrival = listener.next();
        const client = await connect({ host: listener.host, port: listener.port });
        const { stream, events } = await arrival;
        stream.shutdown();
        stream.reset();
        await events.until(() => events.closed !== undefined);
        await client.close();
      }
      await eventually(() => assert.ok(descriptors() <= before, `${descriptors()} descriptors, ${before} before`));
    });
  });
}

/** Waits for a round trip on a new connection. After that, the transport has read every stream that had data and was not paused. */
async function roundTrip(transport: TcpTransport, { host, port }: { host: string; port: number }): Promise<void> {
  const events = new StreamRecorder();
  const stream = transport.connect({ address: host, port }, events);
  await events.until(() => events.isConnected);
  stream.write(Buffer.from('x'));
  await events.until(() => events.received === 1);
  stream.reset();
}

/**
 * Returns a function that returns the largest number of bytes that a stream read in one turn of the event loop.
 * Counts only turns in which all streams read, as they did in the two turns with reads before: a stream that was alone decides the
 * size of its next read before the other stream reads.
 */
function largestSharedRead(turns: Turns, recorders: readonly StreamRecorder[]): () => number {
  let largest = 0;
  let sharedTurns = 0;
  let turn = -1;
  let bytesOfTurn: number[] = [];
  const endTurn = (): void => {
    const isShared = bytesOfTurn.length > 0 && bytesOfTurn.every((bytes) => bytes > 0);
    sharedTurns = isShared ? sharedTurns + 1 : 0;
    if (sharedTurns > 2) largest = Math.max(largest, ...bytesOfTurn);
  };
  for (const [index, recorder] of recorders.entries()) {
    recorder.onBytes = (_, bytes) => {
      if (turn !== turns.current) {
        endTurn();
        turn = turns.current;
        bytesOfTurn = recorders.map(() => 0);
      }
      bytesOfTurn[index] = (bytesOfTurn[index] as number) + bytes.length;
    };
  }
  return () => largest;
}
