import type { Socket } from 'node:net';
import { Http2Connection } from '../../../src/http/h2/connection.ts';
import type { ConnectionHandler } from '../../../src/http/h2/connection-handler.ts';
import type { StreamConsumer } from '../../../src/http/h2/stream.ts';

/** Runs an HTTP/2 connection of Weir over a socket. The socket ends when the connection has failed or is drained. */
export function engineOver(
  socket: Socket,
  role: 'server' | 'client',
  handler: Pick<ConnectionHandler, 'onRequest'> & Partial<ConnectionHandler>,
): Http2Connection {
  socket.setNoDelay(true);
  const connection = new Http2Connection({
    role,
    now: () => performance.now(),
    // `drain` follows only if `write` returns false.
    sink: { write: (bytes) => (socket.write(Uint8Array.from(bytes)) ? 0 : socket.writableLength) },
    handler: {
      onRequest: handler.onRequest,
      onCapacity: () => handler.onCapacity?.(),
      onDrained: () => {
        socket.end();
        handler.onDrained?.();
      },
      onFailure: (code) => {
        socket.end();
        handler.onFailure?.(code);
      },
    },
  });
  socket.on('data', (bytes: Uint8Array) => {
    connection.receive(bytes);
    // The transports of Weir reuse the memory too.
    bytes.fill(0xee);
  });
  socket.on('drain', () => connection.onSinkDrained());
  socket.on('error', () => socket.destroy());
  socket.on('close', () => connection.onSinkClosed());
  connection.start();
  return connection;
}

/** A consumer that ignores what it is not told to handle. */
export function consumerOf(events: Partial<StreamConsumer>): StreamConsumer {
  const ignore = (): void => {};
  return {
    onResponse: ignore,
    onData: ignore,
    onTrailers: ignore,
    onEnd: ignore,
    onDrain: ignore,
    onClose: ignore,
    ...events,
  };
}
