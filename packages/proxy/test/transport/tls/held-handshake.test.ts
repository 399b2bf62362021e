// A TLS handshake whose input waits until the owner of the stream asks for it.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { ClientHelloReader } from '../../../src/protocol/client-hello-reader.ts';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import type { AcceptedStream } from '../../../src/transport/tcp-transport.ts';
import { nodeTlsServer } from '../../../src/transport/tls/node-tls-stream.ts';
import { opensslTlsServer } from '../../../src/transport/tls/openssl-server.ts';
import { startTls, type TlsServer, type TlsServerStream } from '../../../src/transport/tls/tls-server.ts';
import { TRUSTING_CLIENT } from '../../fixtures/certificates.ts';
import { captureNodeClientHello, clientHelloRecord, lengthPrefixed } from '../../protocol/client-hello-bytes.ts';
import { StreamRecorder } from '../tcp/stream-recorder.ts';
import { startTestListener } from '../tcp/test-listener.ts';
import { testTlsServerOptions } from './tls-server-options.ts';

interface HeldHandshake extends Disposable {
  readonly secured: TlsServerStream;
  readonly events: StreamRecorder;
  /** How many times `onInput` was called. */
  inputs(): number;
}

/** Reads the ClientHello and starts the handshake. */
function startHandshake(stream: AcceptedStream, server: TlsServer): Promise<HeldHandshake> {
  const reader = new ClientHelloReader();
  const before = new StreamRecorder();
  const events = new StreamRecorder();
  let inputs = 0;
  const { promise, resolve } = Promise.withResolvers<HeldHandshake>();
  before.onBytes = (_stream, bytes) => {
    if (reader.push(bytes) === 'more') return;
    stream.readStop();
    const options = { tls: testTlsServerOptions(server), unread: reader.bytes, onInput: () => inputs++ };
    const secured = startTls(stream, options, events);
    resolve({ secured, events, inputs: () => inputs, [Symbol.dispose]: () => secured.stream.reset() });
  };
  stream.accept(before);
  stream.readStart();
  return promise;
}

for (const [name, server] of [
  ['Node.js', nodeTlsServer],
  ['OpenSSL', opensslTlsServer],
] as const) {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`${name}, ${version}: what the client sends after its ClientHello waits for \`readInput\``, async () => {
      using listener = await startTestListener(epollTransport);
      const arrival = listener.next({ reads: false });
      const tls = { ...TRUSTING_CLIENT, minVersion: version, maxVersion: version };
      const connecting = connectClient({ host: listener.host, port: listener.port, tls });
      using handshake = await startHandshake((await arrival).stream, server);
      const { secured, events, inputs } = handshake;
      await eventually(() => assert.ok(inputs() > 0));
      assert.equal(events.isConnected, false);
      while (!events.isConnected) {
        const before = inputs();
        if (!secured.readInput() && !events.isConnected) await eventually(() => assert.ok(inputs() > before));
      }
      await using client = await connecting;
      await client.send('hello');
      await events.until(() => events.text === 'hello');
      secured.stream.write(Buffer.from('answer'));
      assert.equal((await client.take(6)).toString(), 'answer');
    });
  }

  test(`${name}: the ClientHello after a HelloRetryRequest, which causes the signature, waits for \`readInput\``, async () => {
    using listener = await startTestListener(epollTransport);
    const arrival = listener.next({ reads: false });
    await using client = await connectClient({ host: listener.host, port: listener.port });
    const { stream } = await arrival;
    const starting = startHandshake(stream, server);
    // The server asks again, because it supports the client's group, but the client has sent no key share of this group.
    await client.send(helloWithKeyShare(Buffer.alloc(0)));
    using handshake = await starting;
    const { secured, inputs } = handshake;
    const retryRequest = await takeRecord(client);
    assert.equal(retryRequest.subarray(6, 38).toString('hex'), HELLO_RETRY_REQUEST);
    assert.equal((await takeRecord(client)).length, CHANGE_CIPHER_SPEC_BYTES);
    await client.send(helloWithKeyShare(Buffer.concat([X25519, lengthPrefixed(Buffer.alloc(32, 9), 2)])));
    await eventually(() => assert.ok(inputs() > 0));
    assert.equal(client.buffered.length, 0);
    secured.readInput();
    const serverHello = await takeRecord(client);
    assert.equal(serverHello[0], 2);
    assert.notEqual(serverHello.subarray(6, 38).toString('hex'), HELLO_RETRY_REQUEST);
  });

  for (const [how, leave] of [
    ['FIN', (client: TestClient) => client.end()],
    ['RST', (client: TestClient) => client.reset()],
  ] as const) {
    test(`${name}: a client that leaves with ${how} during the handshake closes the stream, without a descriptor leak`, async () => {
      using listener = await startTestListener(epollTransport);
      const hello = await captureNodeClientHello(TRUSTING_CLIENT);
      const descriptors = (): number => readdirSync('/proc/self/fd').length;
      const before = descriptors();
      for (let round = 0; round < 10; round += 1) {
        const arrival = listener.next({ reads: false });
        await using client = await connectClient({ host: listener.host, port: listener.port });
        const { stream } = await arrival;
        const starting = startHandshake(stream, server);
        await client.send(hello);
        using handshake = await starting;
        const { secured, events, inputs } = handshake;
        await client.take(5);
        await leave(client);
        await eventually(() => assert.ok(inputs() > 0));
        assert.equal(events.closed, undefined);
        secured.readInput();
        await events.until(() => events.closed !== undefined);
        secured.readInput();
        assert.deepEqual([events.closed, events.isConnected], [{ code: 'ECONNRESET' }, false]);
      }
      await eventually(() => assert.ok(descriptors() <= before, `${descriptors()} descriptors, ${before} before`));
    });
  }
}

const CHANGE_CIPHER_SPEC_BYTES = 1;
const X25519 = Buffer.of(0, 0x1d);
/** The random of a HelloRetryRequest (RFC 8446 §4.1.3). */
const HELLO_RETRY_REQUEST = 'cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c';

function helloWithKeyShare(keyShare: Buffer): Buffer {
  return clientHelloRecord({
    extensions: [
      [43, Buffer.of(2, 3, 4)],
      [10, lengthPrefixed(X25519, 2)],
      [13, lengthPrefixed(Buffer.of(4, 3), 2)],
      [51, lengthPrefixed(keyShare, 2)],
    ],
  });
}

/** Returns the content of the next record that the server sends. */
async function takeRecord(client: TestClient): Promise<Buffer> {
  const header = await client.take(5);
  return client.take(header.readUInt16BE(3));
}
