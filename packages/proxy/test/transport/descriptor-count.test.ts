// The transports count their open descriptors in memory, for kernels that have no count of their own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, discardServer, eventually } from '@weir/testkit';
import { countDescriptorsInMemory } from '../fixtures/counted-descriptors.ts';
import { TLS_TRANSPORTS, TRANSPORTS, UDP_TRANSPORTS } from '../fixtures/transports.ts';
import { StreamRecorder } from './tcp/stream-recorder.ts';
import { startTestListener } from './tcp/test-listener.ts';
import { tlsTransport } from './tls/tls-transport.ts';

const SILENT = {
  onListening: (): void => undefined,
  onFailed: (code: string): void => assert.fail(code),
  onMessage: (): void => undefined,
  onError: (): void => undefined,
  onThrow: (thrown: unknown): void => assert.fail(String(thrown)),
};

const counter = countDescriptorsInMemory();
const before = counter.open;

function untilOpen(count: number): Promise<void> {
  return eventually(() => assert.equal(counter.open - before, count));
}

for (const { name, transport } of TRANSPORTS) {
  test(`${name}: counts listeners, accepted connections and connections to endpoints`, async () => {
    await using endpoint = await discardServer();
    const listener = await startTestListener(transport);
    await untilOpen(1);
    const arrival = listener.next();
    await using client = await connectClient({ host: listener.host, port: listener.port });
    const { stream, events } = await arrival;
    await untilOpen(2);
    const recorder = new StreamRecorder();
    const upstream = transport.connect({ address: endpoint.host, port: endpoint.port }, recorder);
    await recorder.until(() => recorder.isConnected);
    await untilOpen(3);
    await client.end();
    await events.until(() => events.hasEnded);
    stream.shutdown();
    await untilOpen(2);
    upstream.reset();
    await untilOpen(1);
    listener[Symbol.dispose]();
    await untilOpen(0);
  });
}

for (const { name, transport } of TLS_TRANSPORTS) {
  test(`${name}: counts a connection whose TLS is terminated until the connection has closed`, async () => {
    const setup = tlsTransport(name, transport);
    const listener = await startTestListener(setup.transport);
    for (const end of ['our reset', 'a reset of the client']) {
      const arrival = listener.next();
      const connecting = setup.connect({ host: listener.host, port: listener.port });
      const { stream } = await arrival;
      await using client = await connecting;
      await untilOpen(2);
      if (end === 'our reset') stream.reset();
      else client.reset();
      await untilOpen(1);
    }
    listener[Symbol.dispose]();
    await untilOpen(0);
  });
}

for (const [name, transport] of Object.entries(UDP_TRANSPORTS)) {
  test(`UDP over ${name}: counts listeners and sockets to endpoints`, async () => {
    const { promise: isListening, resolve: onListening } = Promise.withResolvers<void>();
    const listener = transport.bind({ address: '127.0.0.1', port: 0, reusePort: true }, { ...SILENT, onListening });
    await isListening;
    assert.equal(transport.connect({ address: '255.255.255.255', port: 1 }, SILENT), undefined);
    const socket = transport.connect({ address: '127.0.0.1', port: 1 }, SILENT);
    await untilOpen(2);
    socket?.close();
    listener.close();
    await untilOpen(0);
  });
}
