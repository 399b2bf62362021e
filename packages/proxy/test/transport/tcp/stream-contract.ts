// What every implementation of a stream is held to, whatever stands behind it.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { discardServer, echoServer, eventually, patternBytes, patternServer } from '@weir/testkit';
import type { TcpTransport } from '../../../src/transport/tcp-transport.ts';
import { testManySlowReaders } from './slow-readers.ts';
import { StreamRecorder } from './stream-recorder.ts';
import type { StreamSetup } from './stream-setup.ts';
import { startTestListener } from './test-listener.ts';

const MEGABYTE = 1_000_000;

export function streamContract(world: StreamSetup): void {
  const { name, transport, connect } = world;
  describe(`${name}: reading and writing`, () => {
    test('nothing is read before it is asked for, nor after it is stopped', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next({ reads: false });
      await using client = await connect({ host: door.host, port: door.port });
      const { stream, events } = await arrival;
      await client.send('first');
      await using other = await echoServer();
      await roundTrip(transport, other);
      assert.equal(events.received, 0);
      stream.readStart();
      await events.until(() => events.received === 5);
      stream.readStop();
      await client.send('second');
      await roundTrip(transport, other);
      assert.equal(events.text, 'first');
      stream.readStart();
      await events.until(() => events.text === 'firstsecond');
    });

    test('a reader that stops makes bytes queue here, and drain when it goes on: none lost, none changed', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connect({ host: door.host, port: door.port, expectPattern: 7 });
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

    test('a chunk that is larger than any buffer arrives whole, and the memory may be used again at once', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connect({ host: door.host, port: door.port, expectPattern: 3 });
      const { stream } = await arrival;
      const huge = patternBytes({ seed: 3, offset: 0, length: 8 * MEGABYTE });
      stream.write(huge);
      huge.fill(0);
      stream.shutdown();
      await client.ended;
      assert.equal(client.received, 8 * MEGABYTE);
    });

    test('tiny chunks keep their order in both directions', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connect({ host: door.host, port: door.port });
      const { stream, events } = await arrival;
      events.onBytes = (_, bytes) => {
        for (const byte of bytes) stream.write(Uint8Array.of(byte));
      };
      const text = Array.from({ length: 500 }, (_, index) => `${index};`).join('');
      for (const char of text) await client.send(char);
      assert.equal((await client.take(text.length)).toString(), text);
    });

    test('one stream takes no more than 256 KiB in a turn in which another one reads, however much waits', async () => {
      using door = await startTestListener(transport);
      await using source = await patternServer({ bytes: 24 * MEGABYTE });
      const arrival = door.next({ reads: false });
      await using client = await connect({ host: door.host, port: door.port });
      const { stream, events: accepted } = await arrival;
      const connected = new StreamRecorder();
      const largest = largestSharedTurn(accepted, connected);
      void client.sendPattern({ bytes: 24 * MEGABYTE, chunk: 4 * MEGABYTE });
      transport.connect({ address: source.host, port: source.port }, connected);
      await connected.until(() => connected.isConnected);
      stream.readStart();
      await accepted.until(() => accepted.received === 24 * MEGABYTE);
      await connected.until(() => connected.hasEnded);
      assert.ok(largest() > 0 && largest() <= 262_144, `${largest()} bytes in one turn`);
    });

    test('slow readers never get each other’s bytes', () => testManySlowReaders(world));

    test('a throw of the owner ends in onThrow', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connect({ host: door.host, port: door.port });
      const { events } = await arrival;
      events.onBytes = () => {
        throw new Error('a bug');
      };
      await client.send('x');
      await events.until(() => events.thrown !== undefined);
      assert.match(String(events.thrown), /a bug/);
      assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    });
  });

  describe(`${name}: ends`, () => {
    test('after the FIN of the peer writing goes on, and both FINs close it', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connect({ host: door.host, port: door.port });
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

    test('after our FIN reading goes on', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connect({ host: door.host, port: door.port });
      const { stream, events } = await arrival;
      stream.shutdown();
      assert.deepEqual(await client.ended, { kind: 'end' });
      await client.send('late');
      await client.end();
      await events.until(() => events.closed !== undefined);
      assert.equal(events.text, 'late');
      assert.deepEqual(events.closed, { code: undefined });
    });

    test('a reset of the peer is told as a failure, and not as its end', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connect({ host: door.host, port: door.port });
      const { events } = await arrival;
      client.reset();
      await events.until(() => events.closed !== undefined);
      assert.deepEqual({ ...events.closed, hasEnded: events.hasEnded }, { code: 'ECONNRESET', hasEnded: false });
    });

    test('our reset reaches the peer at once, whatever is queued', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connect({ host: door.host, port: door.port });
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

    test('what a reset peer did not take stays counted as queued', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connect({ host: door.host, port: door.port });
      client.pause();
      const { stream, events } = await arrival;
      stream.write(Buffer.alloc(24 * MEGABYTE));
      const queued = stream.queuedBytes;
      client.reset();
      await events.until(() => events.closed !== undefined);
      assert.ok(queued > 0 && stream.queuedBytes === queued, `${stream.queuedBytes} of ${queued}`);
      assert.equal(stream.write(Buffer.alloc(10)), queued + 10);
    });

    test('a connected stream that is reset resets its endpoint', async () => {
      await using backend = await discardServer();
      const events = new StreamRecorder();
      const stream = transport.connect({ address: backend.host, port: backend.port }, events);
      await events.until(() => events.isConnected);
      assert.equal(backend.openConnections, 1);
      stream.reset();
      await events.until(() => events.closed !== undefined);
      await eventually(() => assert.equal(backend.openConnections, 0));
    });

    test('a reset right after a FIN leaks no descriptor', async () => {
      using door = await startTestListener(transport);
      const descriptors = (): number => readdirSync('/proc/self/fd').length;
      const before = descriptors();
      for (let round = 0; round < 20; round += 1) {
        const arrival = door.next();
        const client = await connect({ host: door.host, port: door.port });
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

/** By the time it is back everything that was ready to be read has been read. */
async function roundTrip(transport: TcpTransport, { host, port }: { host: string; port: number }): Promise<void> {
  const events = new StreamRecorder();
  const stream = transport.connect({ address: host, port }, events);
  await events.until(() => events.isConnected);
  stream.write(Buffer.from('x'));
  await events.until(() => events.received === 1);
  stream.reset();
}

/** The most that either read in one turn of the event loop, if both did so in that turn and in the one before. */
function largestSharedTurn(...recorders: readonly StreamRecorder[]): () => number {
  let largest = 0;
  let wasShared = false;
  let turn: number[] | undefined;
  const endTurn = (): void => {
    const isShared = turn?.every((bytes) => bytes > 0) ?? false;
    if (isShared && wasShared) largest = Math.max(largest, ...(turn ?? []));
    wasShared = isShared;
    turn = undefined;
  };
  for (const [index, recorder] of recorders.entries()) {
    recorder.onBytes = (_, bytes) => {
      if (turn === undefined) {
        turn = recorders.map(() => 0);
        setImmediate(endTurn);
      }
      turn[index] = (turn[index] as number) + bytes.length;
    };
  }
  return () => largest;
}
