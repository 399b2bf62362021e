// Serves static answers by HTTP/2 over plain sockets, for tests and measurements. Prints the port if run as a program.

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { Http2Connection } from '../../../src/http/h2/connection.ts';
import { encodeLines } from '../../../src/http/h2/head-encoder.ts';
import type { StreamConsumer } from '../../../src/http/h2/stream.ts';
import { asciiBytes } from '../../../src/http/passes/byte-writer.ts';
import { dateText } from '../../../src/http/worker-memory.ts';
import { consumerOf, engineOver } from './engine-socket.ts';

const BODY: Uint8Array = asciiBytes('Hello, world!\n');
const DATE_NAME_BYTES = 'date: '.length;
const LINES: Uint8Array = asciiBytes(
  'Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\nContent-Length: 14\r\nServer: static\r\n',
);
const LINES_RANGE = { start: 0, end: LINES.length, kind: 'response' } as const;

/** Answers when the request is complete. */
function staticAnswer(connection: Http2Connection): StreamConsumer {
  return consumerOf({
    onData: (stream, _bytes, start, end) => connection.consumed(stream, end - start),
    onEnd: (stream) => {
      const encoder = connection.beginHead();
      encoder.status(200);
      LINES.set(dateText(Date.now()), DATE_NAME_BYTES);
      encodeLines(encoder, LINES, LINES_RANGE);
      connection.sendHead(stream, false);
      connection.sendData(stream, BODY, 0, BODY.length, true);
    },
  });
}

function serve(socket: Socket): void {
  const connection = engineOver(socket, 'server', { onRequest: () => answer });
  const answer = staticAnswer(connection);
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
