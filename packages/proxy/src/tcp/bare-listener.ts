import { getSystemErrorName } from 'node:util';
import { requireRawTcpBinding, type TcpHandle } from './bare-binding.ts';
import { RawTcpStream } from './bare-stream.ts';
import { descriptorCeiling } from './descriptor-ceiling.ts';
import {
  LISTEN_BACKLOG,
  type TcpListenOptions,
  type TcpListenSocket,
  type TcpListenSocketEvents,
} from './transport.ts';

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
    // Told only when the caller has this object in hand.
    setImmediate(() => this.#tell(error));
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
    // What is accepted has it from the listener (Linux): a system call less per connection.
    handle.setNoDelay(true);
    return handle.listen(LISTEN_BACKLOG);
  }

  #tell(error: number): void {
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
