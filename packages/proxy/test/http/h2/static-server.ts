// Serves static answers by HTTP/2 over plain sockets, for tests and measurements. Prints the port if run as a program.

import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { Http2Connection } from '../../../src/http/h2/connection.ts';
import type { DecodedHead } from '../../../src/http/h2/decoded-head.ts';
import { encodeLines } from '../../../src/http/h2/head-encoder.ts';
import type { Http2Stream, StreamConsumer } from '../../../src/http/h2/stream.ts';
import { asciiBytes } from '../../../src/http/passes/byte-writer.ts';
import { dateText } from '../../../src/http/worker-memory.ts';

const BODY: Uint8Array = asciiBytes('Hello, world!\n');
const DATE_NAME_BYTES = 'date: '.length;
const LINES: Uint8Array = asciiBytes(
  'Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\nContent-Length: 14\r\nServer: static\r\n',
);
const LINES_RANGE = { start: 0, end: LINES.length, kind: 'response' } as const;

/** Answers when the request is complete. */
class StaticAnswer implements StreamConsumer {
  readonly #connection: Http2Connection;

  constructor(connection: Http2Connection) {
    this.#connection = connection;
  }

  onResponse(): void {}

  onData(stream: Http2Stream, _bytes: Uint8Array, start: number, end: number): void {
    this.#connection.consumed(stream, end - start);
  }

  onTrailers(): void {}

  onEnd(stream: Http2Stream): void {
    const encoder = this.#connection.beginHead();
    encoder.status(200);
    LINES.set(dateText(Date.now()), DATE_NAME_BYTES);
    encodeLines(encoder, LINES, LINES_RANGE);
    this.#connection.sendHead(stream, false);
    this.#connection.sendData(stream, BODY, 0, BODY.length, true);
  }

  onDrain(): void {}

  onClose(): void {}
}

function serve(socket: Socket): void {
  socket.setNoDelay(true);
  const connection = new Http2Connection({
    role: 'server',
    now: () => performance.now(),
    sink: {
      // `drain` follows only if `write` returns false.
      write: (bytes) => (socket.write(Uint8Array.from(bytes)) ? 0 : socket.writableLength),
    },
    handler: {
      onRequest: (_stream: Http2Stream, _head: DecodedHead) => answer,
      onCapacity: () => {},
      onDrained: () => socket.end(),
      onFailure: () => socket.end(),
    },
  });
  const answer = new StaticAnswer(connection);
  connection.start();
  socket.on('data', (bytes: Uint8Array) => connection.receive(bytes));
  socket.on('drain', () => connection.onSinkDrained());
  socket.on('error', () => socket.destroy());
  socket.on('close', () => connection.onSinkClosed());
}

/** Starts the server on a free port of the loopback interface. */
export async function startStaticServer(): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

if (import.meta.main) {
  const { port } = await startStaticServer();
  process.stdout.write(`${port}\n`);
}
