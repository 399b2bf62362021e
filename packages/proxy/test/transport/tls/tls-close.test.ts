// Tests every way to close a TLS connection in every state. Node crashes with a segmentation fault if a TLSSocket and
// the socket below it are closed in the wrong order during an operation.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import type { SecureContext } from 'node:tls';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import type { AcceptedStream, TcpStream } from '../../../src/transport/tcp-transport.ts';
import { nodeTlsContext } from '../../../src/transport/tls/node-tls-stream.ts';
import { startTls } from '../../../src/transport/tls/tls-server.ts';
import { TLS_TRANSPORTS } from '../../fixtures/transports.ts';
import { startTestListener } from '../tcp/test-listener.ts';
import { testTlsServerOptions } from './tls-server-options.ts';
import { tlsTransport } from './tls-transport.ts';

const TOO_LONG_ALPN = new Uint8Array(65_536);

type Act = (stream: TcpStream, client: TestClient) => unknown;

const BEFORE: Readonly<Record<string, Act>> = {
  nothing: () => undefined,
  'a small write': (stream) => void stream.write(Buffer.from('small')),
  'a large write to a reader': (stream) => void stream.write(Buffer.alloc(5_000_000)),
  'a large write to a paused client': (stream, client) => {
    client.pause();
    stream.write(Buffer.alloc(5_000_000));
  },
  'our end': (stream) => stream.shutdown(),
  'a large write and our end': (stream) => {
    stream.write(Buffer.alloc(5_000_000));
    stream.shutdown();
  },
  'data from the client': (_stream, client) => void client.send('data').catch(() => undefined),
  // Returns the promise, so that the test awaits the FIN: a Node socket that is reset before the FIN leaks its
  // descriptor.
  'the end of the client': (_stream, client) => client.end(),
  'a pause': (stream) => stream.readStop(),
};

const ENDS: Readonly<Record<string, Act>> = {
  'our reset': (stream) => stream.reset(),
  'a reset of the client': (_stream, client) => client.reset(),
  'both resets': (stream, client) => {
    client.reset();
    stream.reset();
  },
  'a FIN of the client without close_notify, and our reset': (stream, client) => {
    client.sendBareFin();
    stream.reset();
  },
  'the ends of both': (stream, client) => {
    stream.shutdown();
    stream.readStart();
    client.resume();
    void client.end();
  },
};

const LATER: Readonly<Record<string, (act: () => void) => void>> = {
  'at once': (act) => act(),
  'in the next tick': (act) => process.nextTick(act),
  'in the next iteration': (act) => void setImmediate(act),
  'two iterations later': (act) => void setImmediate(() => setImmediate(act)),
};

for (const { name, transport } of TLS_TRANSPORTS) {
  test(`${name}: closes once in any state of the connection, without a descriptor leak`, async () => {
    const setup = tlsTransport(name, transport);
    using listener = await startTestListener(setup.transport);
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    const before = descriptors();
    for (const [state, prepare] of Object.entries(BEFORE)) {
      for (const [end, act] of Object.entries(ENDS)) {
        for (const [when, later] of Object.entries(LATER)) {
          const arrival = listener.next();
          const connecting = setup.connect({ host: listener.host, port: listener.port });
          const { stream, events } = await arrival;
          await using client = await connecting;
          void events.until(() => events.hasEnded).then(() => stream.shutdown());
          await prepare(stream, client);
          later(() => act(stream, client));
          const late = setTimeout(() => assert.fail(`${end} ${when} after ${state}: no onClose`), 20_000);
          await events.until(() => events.closed !== undefined);
          clearTimeout(late);
          // These calls must have no effect after the close.
          stream.write(Buffer.alloc(10));
          stream.readStart();
          stream.shutdown();
          stream.reset();
        }
      }
    }
    await eventually(() => assert.ok(descriptors() <= before, `${descriptors()} descriptors, ${before} before`));
  });

  test(`${name}: closes the connection if the handshake cannot start`, async () => {
    using listener = await startTestListener(transport);
    const arrival = listener.next();
    await using client = await connectClient({ host: listener.host, port: listener.port });
    const { stream, events } = await arrival;
    const server = transport.tlsServer;
    const context = server === undefined ? nodeTlsContext({} as SecureContext) : testTlsServerOptions(server).context;
    const tls = { context, alpn: TOO_LONG_ALPN, requestsClientCertificate: false };
    assert.throws(() => startTls(stream as AcceptedStream, { tls, unread: Buffer.alloc(5) }, events));
    assert.equal((await client.ended).kind, 'end');
  });
}
