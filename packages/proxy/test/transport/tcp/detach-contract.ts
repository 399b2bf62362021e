// The contract of every transport for a stream that is detached, that is, handed over as the socket below a TLSSocket.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import { ClientHelloReader } from '../../../src/protocol/client-hello-reader.ts';
import type { AcceptedStream, StreamEvents, TcpTransport } from '../../../src/transport/tcp-transport.ts';
import { startTls, type TlsServerStream } from '../../../src/transport/tls/tls-server.ts';
import { TRUSTING_CLIENT } from '../../fixtures/certificates.ts';
import { captureNodeClientHello } from '../../protocol/client-hello-bytes.ts';
import { testTlsServerOptions } from '../tls/tls-server-options.ts';
import { StreamRecorder } from './stream-recorder.ts';
import { startTestListener } from './test-listener.ts';

const SERVER_OPTIONS = testTlsServerOptions();

/** Detaches the stream when the ClientHello is complete. Does so inside `onData`, as the proxy does. */
class DetachingRecorder extends StreamRecorder implements StreamEvents {
  readonly secured: StreamRecorder = new StreamRecorder();
  readonly detached: Promise<TlsServerStream>;

  constructor(stream: AcceptedStream) {
    super();
    const { promise, resolve } = Promise.withResolvers<TlsServerStream>();
    const reader = new ClientHelloReader();
    this.detached = promise;
    this.onBytes = (_stream, chunk) => {
      if (reader.push(chunk) === 'more') return;
      stream.readStop();
      resolve(startTls(stream, { tls: SERVER_OPTIONS, unread: reader.bytes }, this.secured));
    };
    stream.accept(this);
    stream.readStart();
  }
}

export function detachContract(transport: TcpTransport): void {
  test('reads the bytes read before first; the detached stream calls no handler and keeps the address of its peer', async () => {
    using listener = await startTestListener(transport);
    const arrival = listener.next({ reads: false });
    const connecting = connectClient({
      host: listener.host,
      port: listener.port,
      localAddress: '127.0.0.9',
      tls: TRUSTING_CLIENT,
    });
    const { stream } = await arrival;
    const recorder = new DetachingRecorder(stream);
    const { stream: decrypted } = await recorder.detached;
    await using client = await connecting;
    const hello = recorder.received;
    await client.send('hello');
    await recorder.secured.until(() => recorder.secured.text === 'hello');
    decrypted.write(Buffer.from('answer'));
    decrypted.shutdown();
    await client.end();
    await recorder.secured.until(() => recorder.secured.closed !== undefined);
    assert.equal(client.buffered.toString(), 'answer');
    assert.deepEqual([recorder.received, recorder.hasEnded, recorder.closed], [hello, false, undefined]);
    assert.deepEqual([stream.remoteAddress, stream.remotePort], ['127.0.0.9', client.localPort]);
  });

  test('reports the end to the TLS stream only, and leaks no descriptor', async () => {
    using listener = await startTestListener(transport);
    const hello = await captureNodeClientHello(TRUSTING_CLIENT);
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    const before = descriptors();
    for (let round = 0; round < 30; round += 1) {
      const arrival = listener.next({ reads: false });
      await using client = await connectClient({ host: listener.host, port: listener.port });
      const { stream, events } = await arrival;
      const recorder = new DetachingRecorder(stream);
      await client.send(hello);
      const { stream: decrypted } = await recorder.detached;
      if (round % 3 !== 0) await client.take(5);
      if (round % 2 === 0) client.reset();
      else decrypted.reset();
      await recorder.secured.until(() => recorder.secured.closed !== undefined);
      if (round % 2 === 1) assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
      stream.reset();
      stream.readStart();
      assert.deepEqual([events.closed, recorder.closed, recorder.secured.isConnected], [undefined, undefined, false]);
    }
    await eventually(() => assert.ok(descriptors() <= before, `${descriptors()} descriptors, ${before} before`));
  });
}
