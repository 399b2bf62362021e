// The contract of every transport for faults of the peer or the host.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { connectClient, echoServer } from '@weir/testkit';
import type { TcpTransport } from '../../../src/transport/tcp-transport.ts';
import { scriptedEndpoint } from '../../fixtures/scripted-endpoint.ts';
import { unresponsiveEndpoint } from '../../fixtures/unresponsive-endpoint.ts';
import { StreamRecorder } from './stream-recorder.ts';
import { startTestListener } from './test-listener.ts';

const MANY_BYTES = 24_000_000;

export function faultContract(transport: TcpTransport): void {
  test('delivers data that arrives with the FIN before the end', async () => {
    using listener = await startTestListener(transport);
    const arrival = listener.next({ reads: false });
    const socket = connect({ host: listener.host, port: listener.port });
    socket.end('last words');
    const finished = once(socket, 'finish');
    const { stream, events } = await arrival;
    await finished;
    stream.readStart();
    await events.until(() => events.hasEnded);
    assert.equal(events.text, 'last words');
    stream.shutdown();
    await events.until(() => events.closed !== undefined);
    assert.deepEqual(events.closed, { code: undefined });
    socket.destroy();
  });

  test('discards queued bytes of both directions on reset, and closes once', async () => {
    using listener = await startTestListener(transport);
    const arrival = listener.next({ reads: false });
    const socket = connect({ host: listener.host, port: listener.port });
    await once(socket, 'connect');
    const code = codeOf(socket);
    socket.write(Buffer.alloc(MANY_BYTES));
    const { stream, events } = await arrival;
    stream.write(Buffer.alloc(MANY_BYTES));
    assert.ok(stream.queuedBytes > 0);
    stream.reset();
    stream.reset();
    stream.shutdown();
    stream.readStart();
    assert.equal(await code, 'ECONNRESET');
    await events.until(() => events.closed !== undefined);
    assert.equal(events.received, 0);
  });

  test('notices a reset by the client while it does not read', async () => {
    using listener = await startTestListener(transport);
    const arrival = listener.next();
    await using client = await connectClient({ host: listener.host, port: listener.port });
    const { stream, events } = await arrival;
    await client.send('x');
    await events.until(() => events.received === 1);
    stream.readStop();
    client.reset();
    await events.until(() => events.closed !== undefined);
    assert.notEqual(events.closed?.code, undefined);
  });

  test('does not disturb an idle client by probing while it does not read', async () => {
    using listener = await startTestListener(transport);
    const arrival = listener.next();
    await using client = await connectClient({ host: listener.host, port: listener.port });
    const { stream, events } = await arrival;
    stream.readStop();
    const otherArrival = listener.next();
    const other = await connectClient({ host: listener.host, port: listener.port });
    const { stream: otherStream, events: otherEvents } = await otherArrival;
    otherStream.readStop();
    other.reset();
    // Waits until a probe closes `otherStream`. All paused streams are probed together, so `stream` has been probed too.
    await otherEvents.until(() => otherEvents.closed !== undefined);
    assert.equal(client.received, 0);
    await client.send('hello');
    stream.readStart();
    await events.until(() => events.text === 'hello');
  });

  test('reports an unreachable address after the call, without `onConnect`', async () => {
    const events = new StreamRecorder();
    const stream = transport.connect({ address: '255.255.255.255', port: 9 }, events);
    assert.equal(failed(events), false);
    await events.until(() => events.closed !== undefined);
    assert.deepEqual(
      { hasFailed: failed(events), isConnected: events.isConnected },
      { hasFailed: true, isConnected: false },
    );
    stream.reset();
  });

  test('resets a connect that is not answered, also with queued bytes', async () => {
    await using unresponsive = await unresponsiveEndpoint();
    const events = new StreamRecorder();
    const stream = transport.connect(unresponsive.endpoint, events);
    stream.write(Buffer.from('early'));
    stream.reset();
    await events.until(() => events.closed !== undefined);
    assert.deepEqual({ ...events.closed, isConnected: events.isConnected }, { code: undefined, isConnected: false });
  });

  test('sends bytes and a FIN that were queued before the connection existed', async () => {
    await using backend = await echoServer();
    const events = new StreamRecorder();
    const stream = transport.connect({ address: backend.host, port: backend.port }, events);
    stream.write(Buffer.from('early '));
    stream.write(Buffer.alloc(100_000, 'x'));
    stream.shutdown();
    await events.until(() => events.closed !== undefined);
    assert.equal(events.received, 100_006);
    assert.deepEqual(events.closed, { code: undefined });
  });

  test('reports an endpoint that resets at once as a failure', async () => {
    await using backend = await scriptedEndpoint();
    const events = new StreamRecorder();
    transport.connect({ address: backend.host, port: backend.port }, events);
    const client = await backend.next();
    client.reset();
    await events.until(() => events.closed !== undefined);
    assert.deepEqual(events.closed, { code: 'ECONNRESET' });
  });

  test('listens and connects over IPv6', async () => {
    using listener = await startTestListener(transport, '::1');
    const arrival = listener.next();
    const events = new StreamRecorder();
    const stream = transport.connect({ address: '::1', port: listener.port }, events);
    const accepted = await arrival;
    stream.write(Buffer.from('over six'));
    await accepted.events.until(() => accepted.events.text === 'over six');
    assert.equal(accepted.stream.remoteAddress, '::1');
    stream.reset();
  });
}

function failed({ closed }: StreamRecorder): boolean {
  return closed?.code !== undefined;
}

function codeOf(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code));
    socket.on('close', () => resolve(undefined));
  });
}
