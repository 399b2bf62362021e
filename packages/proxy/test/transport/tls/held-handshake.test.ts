// A TLS handshake whose input waits until the owner of the stream asks for it.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import { ClientHelloReader } from '../../../src/protocol/client-hello-reader.ts';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import type { AcceptedStream } from '../../../src/transport/tcp-transport.ts';
import { startTls, type TlsServerStream } from '../../../src/transport/tls/tls-stream.ts';
import { TRUSTING_CLIENT } from '../../fixtures/certificates.ts';
import { captureNodeClientHello } from '../../protocol/client-hello-bytes.ts';
import { StreamRecorder } from '../tcp/stream-recorder.ts';
import { startTestListener } from '../tcp/test-listener.ts';
import { testTlsServerOptions } from './tls-server-options.ts';

interface HeldHandshake {
  readonly secured: TlsServerStream;
  readonly events: StreamRecorder;
  /** How many times `onInput` was called. */
  inputs(): number;
}

/** Reads the ClientHello and starts the handshake. */
function startHandshake(stream: AcceptedStream): Promise<HeldHandshake> {
  const reader = new ClientHelloReader();
  const before = new StreamRecorder();
  const events = new StreamRecorder();
  let inputs = 0;
  const { promise, resolve } = Promise.withResolvers<HeldHandshake>();
  before.onBytes = (_stream, bytes) => {
    if (reader.push(bytes) === 'more') return;
    stream.readStop();
    const options = { tls: testTlsServerOptions(), unread: reader.bytes, onInput: () => inputs++ };
    resolve({ secured: startTls(stream, options, events), events, inputs: () => inputs });
  };
  stream.accept(before);
  stream.readStart();
  return promise;
}

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`${version}: what the client sends after its ClientHello waits for \`readInput\``, async () => {
    using listener = await startTestListener(epollTransport);
    const arrival = listener.next({ reads: false });
    const tls = { ...TRUSTING_CLIENT, minVersion: version, maxVersion: version };
    const connecting = connectClient({ host: listener.host, port: listener.port, tls });
    const { secured, events, inputs } = await startHandshake((await arrival).stream);
    await eventually(() => assert.ok(inputs() > 0));
    assert.equal(events.isConnected, false);
    while (!events.isConnected) {
      const before = inputs();
      secured.readInput();
      if (!events.isConnected) await eventually(() => assert.ok(inputs() > before));
    }
    await using client = await connecting;
    await client.send('hello');
    await events.until(() => events.text === 'hello');
    secured.stream.write(Buffer.from('answer'));
    assert.equal((await client.take(6)).toString(), 'answer');
  });
}

for (const [how, leave] of [
  ['FIN', (client: Awaited<ReturnType<typeof connectClient>>) => client.end()],
  ['RST', (client: Awaited<ReturnType<typeof connectClient>>) => client.reset()],
] as const) {
  test(`a client that leaves with ${how} during the handshake closes the stream, without a descriptor leak`, async () => {
    using listener = await startTestListener(epollTransport);
    const hello = await captureNodeClientHello(TRUSTING_CLIENT);
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    const before = descriptors();
    for (let round = 0; round < 10; round += 1) {
      const arrival = listener.next({ reads: false });
      await using client = await connectClient({ host: listener.host, port: listener.port });
      const { stream } = await arrival;
      const starting = startHandshake(stream);
      await client.send(hello);
      const { secured, events, inputs } = await starting;
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
