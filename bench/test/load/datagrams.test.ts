import assert from 'node:assert/strict';
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { startEchoBackend } from '../../src/backends/start-backends.ts';
import { STREAM_DATAGRAM_BYTES } from '../../src/load/datagram-stream.ts';
import {
  type DatagramReport,
  datagramReportErrors,
  datagramStreamErrors,
  runDatagramStream,
  runDatagrams,
} from '../../src/load/generators.ts';

const report: DatagramReport = { sent: 10_000, roundTrips: 10_000, corrupted: 0, lost: 0, ms: 1_000, messageBytes: 64 };

describe('runDatagrams', () => {
  test('reports errors if no datagram, a corrupted datagram, or fewer than 999 of 1,000 came back', () => {
    assert.deepEqual(datagramReportErrors(report), []);
    assert.deepEqual(datagramReportErrors({ ...report, lost: 10 }), []);
    assert.deepEqual(datagramReportErrors({ ...report, lost: 11 }), ['11 of 10000 datagrams were lost']);
    assert.match(datagramReportErrors({ ...report, corrupted: 1 })[0] ?? '', /^1 echoed datagrams differ/);
    assert.match(datagramReportErrors({ ...report, roundTrips: 0 })[0] ?? '', /no datagram/);
  });

  test('counts round trips with one pending datagram on each flow', async () => {
    const seen = new Map<number, number>();
    await using echo = await udpServer((socket, message, from) => {
      seen.set(from.port, (seen.get(from.port) ?? 0) + 1);
      socket.send(message, from.port, from.address);
    });
    const { sent, roundTrips, corrupted, lost } = await runDatagrams({ port: echo.port, seconds: 1, flows: 3 });
    assert.equal(seen.size, 3);
    assert.equal(
      [...seen.values()].reduce((sum, count) => sum + count, 0),
      sent,
    );
    assert.deepEqual([roundTrips, corrupted, lost], [sent, 0, 0]);
  });

  test('counts lost and corrupted datagrams', async () => {
    await using corrupting = await udpServer((socket, _message, from) =>
      socket.send('another datagram', from.port, from.address),
    );
    const { sent, roundTrips, corrupted, lost } = await runDatagrams({ port: corrupting.port, seconds: 0, flows: 2 });
    assert.deepEqual({ sent, roundTrips, corrupted, lost }, { sent: 2, roundTrips: 0, corrupted: 2, lost: 2 });
  });
});

describe('runDatagramStream', () => {
  test('sends at a fixed rate, and learns from the backend how many datagrams have arrived', async () => {
    await using echo = await startEchoBackend();
    const options = { port: echo.ports.datagrams, seconds: 0.5, flows: 4, rate: 1_000 };
    const { sent, arrived, traffic } = await runDatagramStream(options);
    assert.deepEqual([sent, arrived], [500, 500]);
    // Each flow asks for its count with one byte, and the answer is "125".
    assert.deepEqual(traffic, { sentBytes: 500 * STREAM_DATAGRAM_BYTES + 4, receivedBytes: 4 * 3 });
  });

  test('reports an error if more than one of a hundred datagrams is lost', () => {
    const lossless = { sent: 1_000, arrived: 1_000, ms: 1, traffic: { sentBytes: 0, receivedBytes: 0 } };
    assert.deepEqual(datagramStreamErrors(lossless), []);
    assert.deepEqual(datagramStreamErrors({ ...lossless, arrived: 990 }), []);
    assert.deepEqual(datagramStreamErrors({ ...lossless, arrived: 989 }), ['11 of 1000 datagrams were lost']);
  });
});

type OnMessage = (socket: Socket, message: Buffer, from: RemoteInfo) => void;

async function udpServer(onMessage: OnMessage): Promise<AsyncDisposable & { readonly port: number }> {
  const socket = createSocket('udp4');
  socket.on('message', (message, from) => onMessage(socket, message, from));
  await once(socket.bind({ address: '127.0.0.1', port: 0 }), 'listening');
  const { port } = socket.address();
  return { port, [Symbol.asyncDispose]: async () => void socket.close() };
}
