// What every implementation of the socket interface does when the other side, or the machine, does not play along.
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

const MUCH = 24_000_000;

export function faultContract(transport: TcpTransport): void {
  test('what comes in the same packet as the FIN is told before the end', async () => {
    using door = await startTestListener(transport);
    const arrival = door.next({ reads: false });
    const socket = connect({ host: door.host, port: door.port });
    socket.end('last words');
    const { stream, events } = await arrival;
    await once(socket, 'finish');
    stream.readStart();
    await events.until(() => events.hasEnded);
    assert.equal(events.text, 'last words');
    stream.shutdown();
    await events.until(() => events.closed !== undefined);
    assert.deepEqual(events.closed, { code: undefined });
    socket.destroy();
  });

  test('a reset discards what is queued on either side of it, and is told once', async () => {
    using door = await startTestListener(transport);
    const arrival = door.next({ reads: false });
    const socket = connect({ host: door.host, port: door.port });
    await once(socket, 'connect');
    const code = codeOf(socket);
    socket.write(Buffer.alloc(MUCH));
    const { stream, events } = await arrival;
    stream.write(Buffer.alloc(MUCH));
    assert.ok(stream.queuedBytes > 0);
    stream.reset();
    stream.reset();
    stream.shutdown();
    stream.readStart();
    assert.equal(await code, 'ECONNRESET');
    await events.until(() => events.closed !== undefined);
    assert.equal(events.received, 0);
  });

  test('a client that resets is noticed also while it is not read from', async () => {
    using door = await startTestListener(transport);
    const arrival = door.next();
    await using client = await connectClient({ host: door.host, port: door.port });
    const { stream, events } = await arrival;
    await client.send('x');
    await events.until(() => events.received === 1);
    stream.readStop();
    client.reset();
    await events.until(() => events.closed !== undefined);
    assert.notEqual(events.closed?.code, undefined);
  });

  test('a client that only waits is not disturbed by being looked after while it is not read from', async () => {
    using door = await startTestListener(transport);
    const arrival = door.next();
    await using client = await connectClient({ host: door.host, port: door.port });
    const { stream, events } = await arrival;
    stream.readStop();
    const gone = door.next();
    const other = await connectClient({ host: door.host, port: door.port });
    const { stream: otherStream, events: otherEvents } = await gone;
    otherStream.readStop();
    other.reset();
    // Both were looked at by the time when this one is found out.
    await otherEvents.until(() => otherEvents.closed !== undefined);
    assert.equal(client.received, 0);
    await client.send('hello');
    stream.readStart();
    await events.until(() => events.text === 'hello');
  });

  test('an address that cannot be reached is reported after the call, without having been connected', async () => {
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

  test('an attempt that nobody answers can be given up, also with bytes that wait for it', async () => {
    await using deaf = await unresponsiveEndpoint();
    const events = new StreamRecorder();
    const stream = transport.connect(deaf.endpoint, events);
    stream.write(Buffer.from('early'));
    stream.reset();
    await events.until(() => events.closed !== undefined);
    assert.deepEqual({ ...events.closed, isConnected: events.isConnected }, { code: undefined, isConnected: false });
  });

  test('bytes and a FIN that are given before the connection exists follow once it does', async () => {
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

  test('an endpoint that resets at once is told as a failure', async () => {
    await using backend = await scriptedEndpoint();
    const events = new StreamRecorder();
    transport.connect({ address: backend.host, port: backend.port }, events);
    const client = await backend.next();
    client.reset();
    await events.until(() => events.closed !== undefined);
    assert.deepEqual(events.closed, { code: 'ECONNRESET' });
  });

  test('IPv6 is listened to and connected to', async () => {
    using door = await startTestListener(transport, '::1');
    const arrival = door.next();
    const events = new StreamRecorder();
    const stream = transport.connect({ address: '::1', port: door.port }, events);
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
