// A stream that is given away as the socket below a TLSSocket.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { connectRaw, eventually } from '@weir/testkit';
import type { AcceptedStream, StreamEvents, Transport } from '../../src/tcp/transport.ts';
import { createClientHelloReader } from '../../src/tls/client-hello-reader.ts';
import { type SecuredStream, secure } from '../../src/tls/tls-stream.ts';
import { TRUSTING } from '../fixtures/certificates.ts';
import { helloOfNode } from '../tls/hellos.ts';
import { someTerms } from '../tls/some-terms.ts';
import { accepting } from './accepting.ts';
import { Recorder } from './recorder.ts';

const TERMS = someTerms();

/** When the hello is there, the stream is given away in the middle of being told of it. */
class Giver extends Recorder implements StreamEvents {
  readonly secured: Recorder = new Recorder();
  readonly given: Promise<SecuredStream>;

  constructor(stream: AcceptedStream) {
    super();
    const { promise, resolve } = Promise.withResolvers<SecuredStream>();
    const reader = createClientHelloReader();
    this.given = promise;
    this.onBytes = (_stream, chunk) => {
      if (reader.push(chunk) === 'more') return;
      stream.readStop();
      resolve(secure(stream, { terms: TERMS, unread: reader.bytes }, this.secured));
    };
    stream.accept(this);
    stream.readStart();
  }
}

export function givingContract(transport: Transport): void {
  test('what was read already is read first, then what comes; the stream tells no more, and knows its peer', async () => {
    using door = await accepting(transport);
    const arrival = door.next({ reads: false });
    const connecting = connectRaw({ host: door.host, port: door.port, localAddress: '127.0.0.9', tls: TRUSTING });
    const { stream } = await arrival;
    const giver = new Giver(stream);
    const { stream: inClear } = await giver.given;
    await using client = await connecting;
    const hello = giver.received;
    await client.send('hello');
    await giver.secured.until(() => giver.secured.text === 'hello');
    inClear.write(Buffer.from('answer'));
    inClear.shutdown();
    await client.end();
    await giver.secured.until(() => giver.secured.closed !== undefined);
    assert.equal(client.buffered.toString(), 'answer');
    assert.deepEqual([giver.received, giver.hasEnded, giver.closed], [hello, false, undefined]);
    assert.deepEqual([stream.remoteAddress, stream.remotePort], ['127.0.0.9', client.localPort]);
  });

  test('however it ends it is told by the new one alone, and no descriptor is left', async () => {
    using door = await accepting(transport);
    const hello = await helloOfNode(TRUSTING);
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    const before = descriptors();
    for (let round = 0; round < 30; round += 1) {
      const arrival = door.next({ reads: false });
      await using client = await connectRaw({ host: door.host, port: door.port });
      const { stream, events } = await arrival;
      const giver = new Giver(stream);
      await client.send(hello);
      const { stream: inClear } = await giver.given;
      if (round % 3 !== 0) await client.take(5);
      if (round % 2 === 0) client.reset();
      else inClear.reset();
      await giver.secured.until(() => giver.secured.closed !== undefined);
      if (round % 2 === 1) assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
      stream.reset();
      stream.readStart();
      assert.deepEqual([events.closed, giver.closed, giver.secured.isConnected], [undefined, undefined, false]);
    }
    await eventually(() => assert.ok(descriptors() <= before, `${descriptors()} descriptors, ${before} before`));
  });
}
