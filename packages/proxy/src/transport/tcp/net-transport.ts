import { createServer, type Socket } from 'node:net';
import { countDescriptor, countSocket } from '../../limits/descriptor-count.ts';
import { descriptorCeiling } from '../../limits/descriptor-limit.ts';
import {
  LISTEN_BACKLOG,
  type TcpListenOptions,
  type TcpListenSocket,
  type TcpListenSocketEvents,
  type TcpTransport,
} from '../tcp-transport.ts';
import { currentLoopIteration } from './loop-iteration.ts';
import { acceptedStream, connectedStream } from './net-stream.ts';

const ceiling = descriptorCeiling();

/** TCP on the public `net` module: works on every version of Node.js, but is slower than system calls. */
export const netTransport: TcpTransport = {
  listen,
  connect: connectedStream,
  turns: {
    get current() {
      return currentLoopIteration();
    },
    get nowMs() {
      return performance.now();
    },
    runInNext: setImmediate,
    runAtEnd: setImmediate,
  },
};

function listen(at: TcpListenOptions, events: TcpListenSocketEvents): TcpListenSocket {
  // `pauseOnConnect`, because nothing may be read before the connection has an owner.
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true });
  server.on('connection', (socket) => {
    countSocket(socket);
    if (descriptorOf(socket) < ceiling) {
      events.onConnection(acceptedStream(socket));
      return;
    }
    socket.resetAndDestroy();
    events.onAcceptError('EMFILE');
  });
  server.on('error', (error: NodeJS.ErrnoException) => {
    const code = error.code ?? error.message;
    if (server.listening) events.onAcceptError(code);
    else events.onFailed(code);
  });
  let isListening = false;
  server.on('listening', () => {
    isListening = true;
    countDescriptor(1);
    events.onListening();
  });
  server.listen({
    host: at.address,
    port: at.port,
    backlog: LISTEN_BACKLOG,
    exclusive: true,
    ipv6Only: true,
    ...(at.reusePort ? { reusePort: true } : {}),
  });
  return {
    close() {
      if (isListening) countDescriptor(-1);
      isListening = false;
      server.close();
    },
  };
}

/**
 * Returns the descriptor from an internal field of the socket, or -1 if the field is missing. With -1 no connection is
 * refused because of `ceiling`.
 */
function descriptorOf(socket: Socket): number {
  return (socket as Socket & { readonly _handle?: { readonly fd?: number } })._handle?.fd ?? -1;
}
