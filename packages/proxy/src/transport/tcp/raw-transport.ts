import { getSystemErrorName } from 'node:util';
import { descriptorCeiling } from '../../limits/descriptor-limit.ts';
import {
  LISTEN_BACKLOG,
  type SocketAddress,
  type StreamEvents,
  type TcpListenOptions,
  type TcpListenSocket,
  type TcpListenSocketEvents,
  type TcpTransport,
} from '../tcp-transport.ts';
import { onConnected } from './raw-callbacks.ts';
import { RawTcpStream } from './raw-stream.ts';
import { requireRawTcpBinding, type TcpHandle } from './raw-tcp-binding.ts';

const { newServer, IPV6_ONLY, REUSE_PORT } = requireRawTcpBinding();
const ceiling = descriptorCeiling();

export class RawTcpListenSocket implements TcpListenSocket {
  readonly #handle: TcpHandle = newServer();
  readonly #events: TcpListenSocketEvents;
  #isClosed = false;

  constructor(at: TcpListenOptions, events: TcpListenSocketEvents) {
    this.#events = events;
    this.#handle.owner = this;
    this.#handle.onconnection = onConnection;
    const error = this.#open(at);
    // Deferred, because the caller gets this object only when the constructor has returned.
    setImmediate(() => this.#emitResult(error));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#handle.close();
  }

  take(status: number, handle: TcpHandle | undefined): void {
    if (handle === undefined) {
      this.#events.onAcceptError(getSystemErrorName(status));
    } else if (handle.fd >= ceiling) {
      handle.reset();
      this.#events.onAcceptError('EMFILE');
    } else {
      this.#events.onConnection(new RawTcpStream(handle));
    }
  }

  #open({ address, port, reusePort }: TcpListenOptions): number {
    const handle = this.#handle;
    const flags = reusePort ? REUSE_PORT : 0;
    const bound = address.includes(':')
      ? handle.bind6(address, port, flags | IPV6_ONLY)
      : handle.bind(address, port, flags);
    if (bound < 0) return bound;
    // On Linux, accepted sockets inherit TCP_NODELAY from the listen socket. That saves one system call per connection.
    handle.setNoDelay(true);
    return handle.listen(LISTEN_BACKLOG);
  }

  #emitResult(error: number): void {
    if (this.#isClosed) return;
    if (error === 0) {
      this.#events.onListening();
      return;
    }
    this.close();
    this.#events.onFailed(getSystemErrorName(error));
  }
}

function onConnection(this: TcpHandle, status: number, handle: TcpHandle | undefined): void {
  (this.owner as RawTcpListenSocket).take(status, handle);
}

const { newSocket, newConnectRequest } = requireRawTcpBinding();

/** TCP on the libuv handles below `node:net`, without the cost of `net.Socket`. */
export const rawTransport: TcpTransport = {
  listen: (at, events) => new RawTcpListenSocket(at, events),
  connect,
};

function connect({ address, port }: SocketAddress, events: StreamEvents): RawTcpStream {
  const handle = newSocket();
  const stream = new RawTcpStream(handle, 'unused');
  stream.connecting(events);
  const request = newConnectRequest();
  request.owner = stream;
  request.oncomplete = onConnected;
  const error = address.includes(':')
    ? handle.connect6(request, address, port)
    : handle.connect(request, address, port);
  if (error < 0) stream.fail(error);
  return stream;
}
