// The contract of a TCP transport, which both implementations must pass.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { connectClient, echoServer, freePort } from '@weir/testkit';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import { netTransport } from '../../../src/transport/tcp/net-transport.ts';
import { sendUrgent } from '../../fixtures/tcp-info.ts';
import { descriptorContract } from './descriptor-contract.ts';
import { detachContract } from './detach-contract.ts';
import { faultContract } from './fault-contract.ts';
import { streamContract } from './stream-contract.ts';
import { StreamRecorder } from './stream-recorder.ts';
import { PORT, startTestListener } from './test-listener.ts';

for (const [kind, name, transport] of [
  ['epoll', 'system calls', epollTransport],
  ['net', 'public net', netTransport],
] as const) {
  describe(`${name}: faults`, () => faultContract(transport));
  describe(`${name}: descriptors`, () => descriptorContract(kind, transport));
  describe(`${name}: detaching`, () => detachContract(transport));
  streamContract({ name, transport, connect: connectClient });

  describe(`${name}: listening`, () => {
    test('accepts a connection with the address of its client', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connectClient({ host: listener.host, port: listener.port, localAddress: '127.0.0.9' });
      const { stream, events } = await arrival;
      await client.send('ping');
      await events.until(() => events.received === 4);
      stream.write(Buffer.from('pong'));
      assert.equal(stream.remoteAddress, '127.0.0.9');
      assert.equal((await client.take(4)).toString(), 'pong');
    });

    test('delivers the bytes before and after urgent data', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      const client = connect({ host: listener.host, port: listener.port, noDelay: true });
      await once(client, 'connect');
      const { events } = await arrival;
      client.write('before');
      sendUrgent(client, 0x21);
      client.write('after');
      await events.until(() => events.text === 'beforeafter');
      client.destroy();
    });

    test('calls only the new owner after a stream was handed over', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connectClient({ host: listener.host, port: listener.port });
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

    test('reports the code if the port is in use', async () => {
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

    test('releases the port before `close` returns, and keeps accepted streams', async () => {
      using listener = await startTestListener(transport);
      const arrival = listener.next();
      await using client = await connectClient({ host: listener.host, port: listener.port });
      const { stream } = await arrival;
      listener.listener.close();
      using again = await startTestListener(transport, listener.host);
      assert.equal(again.port, PORT);
      stream.write(Buffer.from('still here'));
      assert.equal((await client.take(10)).toString(), 'still here');
    });
  });

  describe(`${name}: connecting`, () => {
    test('reports the code of an endpoint that refuses, without `onConnect`', async () => {
      const events = new StreamRecorder();
      transport.connect({ address: '127.0.0.1', port: await freePort() }, events);
      await events.until(() => events.closed !== undefined);
      assert.deepEqual(events.closed, { code: 'ECONNREFUSED' });
      assert.equal(events.isConnected, false);
    });

    test('closes a reset connect without a failure', async () => {
      await using backend = await echoServer();
      const events = new StreamRecorder();
      transport.connect({ address: backend.host, port: backend.port }, events).reset();
      await events.until(() => events.closed !== undefined);
      assert.deepEqual({ ...events.closed, isConnected: events.isConnected }, { code: undefined, isConnected: false });
    });
  });
}
