import { createServer } from 'node:net';
import { acceptedStream, connectedStream } from './net-stream.ts';
import { BACKLOG, type ListenAt, type ListenerEvents, type TcpListener, type Transport } from './transport.ts';

/** TCP on the public `net` module: right everywhere, and not the fastest. */
export const netTransport: Transport = { listen, connect: connectedStream };

function listen(at: ListenAt, events: ListenerEvents): TcpListener {
  // Paused, so that not a byte is read before somewhere to send it is found.
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true });
  server.on('connection', (socket) => events.onConnection(acceptedStream(socket)));
  server.on('error', (error: NodeJS.ErrnoException) => {
    const code = error.code ?? error.message;
    if (server.listening) events.onAcceptError(code);
    else events.onFailed(code);
  });
  server.on('listening', () => events.onListening());
  server.listen({
    host: at.address,
    port: at.port,
    backlog: BACKLOG,
    exclusive: true,
    ipv6Only: true,
    ...(at.reusePort ? { reusePort: true } : {}),
  });
  return { close: () => void server.close() };
}
