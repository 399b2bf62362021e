// What every implementation of the socket interface is held to.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connectClient, echoServer, freePort } from '@weir/testkit';
import type { TcpTransport } from '../../../src/transport/tcp-transport.ts';
import { descriptorContract } from './descriptor-contract.ts';
import { detachContract } from './detach-contract.ts';
import { faultContract } from './fault-contract.ts';
import type { TransportName } from './few-descriptors-process.ts';
import { streamContract } from './stream-contract.ts';
import { StreamRecorder } from './stream-recorder.ts';
import { PORT, startTestListener } from './test-listener.ts';

export function transportContract(kind: TransportName, transport: TcpTransport): void {
  const name = kind === 'bare' ? 'bare handles' : 'public net';
  describe(`${name}: faults`, () => faultContract(transport));
  describe(`${name}: descriptors`, () => descriptorContract(kind, transport));
  describe(`${name}: given away`, () => detachContract(transport));
  streamContract({ name, transport, connect: connectClient });

  describe(`${name}: listening`, () => {
    test('a connection is accepted with the address of its client', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connectClient({ host: door.host, port: door.port, localAddress: '127.0.0.9' });
      const { stream, events } = await arrival;
      await client.send('ping');
      await events.until(() => events.received === 4);
      stream.write(Buffer.from('pong'));
      assert.equal(stream.remoteAddress, '127.0.0.9');
      assert.equal((await client.take(4)).toString(), 'pong');
    });

    test('a stream that is handed to another owner tells only that one from then on', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connectClient({ host: door.host, port: door.port });
      const { stream, events: first } = await arrival;
      const second = new StreamRecorder();
      first.onBytes = () => stream.accept(second);
      await client.send('hello');
      await first.until(() => first.received > 0);
      await client.send(' world');
      await client.end();
      await second.until(() => second.hasEnded);
      assert.equal(first.received + second.received, 11);
      assert.equal(first.received, 5);
      assert.equal(first.hasEnded, false);
    });

    test('a port that is taken is reported by its code', async () => {
      await using holder = await echoServer();
      const code = await new Promise<string>((resolve, reject) => {
        transport.listen(
          { address: holder.host, port: holder.port, reusePort: true },
          {
            onListening: () => reject(new Error('it listens')),
            onFailed: resolve,
            onConnection: () => undefined,
            onAcceptError: () => undefined,
          },
        );
      });
      assert.equal(code, 'EADDRINUSE');
    });

    test('closing releases the port before it returns, and leaves what was accepted alone', async () => {
      using door = await startTestListener(transport);
      const arrival = door.next();
      await using client = await connectClient({ host: door.host, port: door.port });
      const { stream } = await arrival;
      door.listener.close();
      using again = await startTestListener(transport, door.host);
      assert.equal(again.port, PORT);
      stream.write(Buffer.from('still here'));
      assert.equal((await client.take(10)).toString(), 'still here');
    });
  });

  describe(`${name}: connecting`, () => {
    test('an endpoint that refuses is reported by its code, without having been connected', async () => {
      const events = new StreamRecorder();
      transport.connect({ address: '127.0.0.1', port: await freePort() }, events);
      await events.until(() => events.closed !== undefined);
      assert.deepEqual(events.closed, { code: 'ECONNREFUSED' });
      assert.equal(events.isConnected, false);
    });

    test('an attempt that is given up ends without a failure', async () => {
      await using backend = await echoServer();
      const events = new StreamRecorder();
      transport.connect({ address: backend.host, port: backend.port }, events).reset();
      await events.until(() => events.closed !== undefined);
      assert.deepEqual({ ...events.closed, isConnected: events.isConnected }, { code: undefined, isConnected: false });
    });
  });
}
