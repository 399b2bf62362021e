// A stream that is given away as a public socket: for TLS, which reads what its socket holds.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { connectRaw, eventually } from '@weir/testkit';
import type { AcceptedStream, StreamEvents, Transport } from '../../src/tcp/transport.ts';
import { accepting } from './accepting.ts';
import { Recorder } from './recorder.ts';

/** When so many bytes are there, the stream is given away with all of them, in the middle of being told of the last ones. */
class Giver extends Recorder implements StreamEvents {
  readonly given: Promise<Socket>;

  constructor(stream: AcceptedStream, bytes: number) {
    super();
    const { promise, resolve } = Promise.withResolvers<Socket>();
    this.given = promise;
    this.onBytes = (_stream, chunk) => {
      this.chunks.push(Buffer.from(chunk));
      if (this.received < bytes) return;
      stream.readStop();
      resolve(stream.toSocket(Buffer.concat(this.chunks)));
    };
  }
}

export function givingContract(transport: Transport): void {
  test('the socket reads what was read already, then what comes, and nothing twice; the stream tells no more', async () => {
    using door = await accepting(transport);
    const arrival = door.next({ reads: false });
    await using client = await connectRaw({ ...door, localAddress: '127.0.0.9' });
    const { stream } = await arrival;
    const giver = new Giver(stream, 10);
    stream.accept(giver);
    stream.readStart();
    await client.send('hello');
    await giver.until(() => giver.received === 5);
    await client.send(' there');
    const socket = await giver.given;
    await client.send(', socket');
    await client.end();
    let text = '';
    for await (const chunk of socket) text += chunk;
    assert.equal(text, 'hello there, socket');
    assert.equal(giver.received, 11);
    assert.deepEqual([giver.hasEnded, giver.closed], [false, undefined]);
    assert.deepEqual([stream.remoteAddress, stream.remotePort], ['127.0.0.9', client.localPort]);
  });

  test('the socket reads nothing until it is asked to, writes, and may be half closed', async () => {
    using door = await accepting(transport);
    const arrival = door.next({ reads: false });
    await using client = await connectRaw(door);
    const { stream } = await arrival;
    const socket = stream.toSocket(new Uint8Array(0));
    await client.send('first');
    socket.end('answer');
    assert.deepEqual(await client.ended, { kind: 'end' });
    assert.equal(client.buffered.toString(), 'answer');
    assert.equal(socket.readableFlowing === true || socket.readableLength > 0, false);
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    assert.equal(chunk.toString(), 'first');
    socket.destroy();
  });

  test('much that comes while it is given away is neither lost nor changed', async () => {
    using door = await accepting(transport);
    const arrival = door.next({ reads: false });
    await using client = await connectRaw(door);
    const { stream } = await arrival;
    const giver = new Giver(stream, 300_000);
    stream.accept(giver);
    stream.readStart();
    const text = Array.from({ length: 300_000 }, (_, index) => `${index};`).join('');
    void client.send(text).then(() => client.end());
    const chunks: Buffer[] = [];
    for await (const chunk of await giver.given) chunks.push(chunk as Buffer);
    assert.ok(Buffer.concat(chunks).equals(Buffer.from(text)));
  });

  test('a reset of the peer, or of the socket, is the socket’s alone, and no descriptor is left', async () => {
    using door = await accepting(transport);
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    const before = descriptors();
    for (let round = 0; round < 20; round += 1) {
      const arrival = door.next();
      const client = await connectRaw(door);
      const { stream, events } = await arrival;
      const socket = stream.toSocket(new Uint8Array(0));
      const closed = once(socket.on('error', () => undefined).resume(), 'close');
      if (round % 2 === 0) client.reset();
      else socket.resetAndDestroy();
      await closed;
      if (round % 2 === 1) assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
      stream.reset();
      stream.readStart();
      await client.close();
      assert.equal(events.closed, undefined);
    }
    await eventually(() => assert.ok(descriptors() <= before, `${descriptors()} descriptors, ${before} before`));
  });
}
