// A stream that is given away as the socket below a TLSSocket.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import { ClientHelloReader } from '../../../src/protocol/client-hello-reader.ts';
import type { AcceptedStream, StreamEvents, TcpTransport } from '../../../src/transport/tcp-transport.ts';
import { startTls, type TlsServerStream } from '../../../src/transport/tls/tls-stream.ts';
import { TRUSTING_CLIENT } from '../../fixtures/certificates.ts';
import { captureNodeClientHello } from '../../protocol/client-hello-bytes.ts';
import { testTlsServerOptions } from '../tls/tls-server-options.ts';
import { StreamRecorder } from './stream-recorder.ts';
import { startTestListener } from './test-listener.ts';

const TERMS = testTlsServerOptions();

/** When the hello is there, the stream is given away in the middle of being told of it. */
class DetachingRecorder extends StreamRecorder implements StreamEvents {
  readonly secured: StreamRecorder = new StreamRecorder();
  readonly given: Promise<TlsServerStream>;

  constructor(stream: AcceptedStream) {
    super();
    const { promise, resolve } = Promise.withResolvers<TlsServerStream>();
    const reader = new ClientHelloReader();
    this.given = promise;
    this.onBytes = (_stream, chunk) => {
      if (reader.push(chunk) === 'more') return;
      stream.readStop();
      resolve(startTls(stream, { tls: TERMS, unread: reader.bytes }, this.secured));
    };
    stream.accept(this);
    stream.readStart();
  }
}

export function detachContract(transport: TcpTransport): void {
  test('what was read already is read first, then what comes; the stream tells no more, and knows its peer', async () => {
    using door = await startTestListener(transport);
    const arrival = door.next({ reads: false });
    const connecting = connectClient({
      host: door.host,
      port: door.port,
      localAddress: '127.0.0.9',
      tls: TRUSTING_CLIENT,
    });
    const { stream } = await arrival;
    const giver = new DetachingRecorder(stream);
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
    using door = await startTestListener(transport);
    const hello = await captureNodeClientHello(TRUSTING_CLIENT);
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    const before = descriptors();
    for (let round = 0; round < 30; round += 1) {
      const arrival = door.next({ reads: false });
      await using client = await connectClient({ host: door.host, port: door.port });
      const { stream, events } = await arrival;
      const giver = new DetachingRecorder(stream);
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
