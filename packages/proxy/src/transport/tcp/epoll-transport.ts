import { getSystemErrorName } from 'node:util';
import { descriptorCeiling } from '../../limits/descriptor-limit.ts';
import { eventLoop } from '../event-loop.ts';
import {
  AF_INET6,
  EPOLLIN,
  IPPROTO_IPV6,
  IPPROTO_TCP,
  IPV6_V6ONLY,
  SO_RCVBUF,
  SO_REUSEADDR,
  SO_REUSEPORT,
  SOCK_STREAM,
  SOL_SOCKET,
  TCP_NODELAY,
} from '../syscalls/layouts.ts';
import {
  acceptConnection,
  acceptedPeer,
  bindSocket,
  closeDescriptor,
  connectSocket,
  familyOf,
  listenSocket,
  openSocket,
  resetConnection,
  setOption,
} from '../syscalls/sockets.ts';
import {
  LISTEN_BACKLOG,
  type SocketAddress,
  type StreamEvents,
  type TcpListenOptions,
  type TcpListenSocket,
  type TcpListenSocketEvents,
  type TcpTransport,
  type Turns,
  type Window,
} from '../tcp-transport.ts';
import { EpollStream, STREAM_EVENTS } from './epoll-stream.ts';
import { writeMemory } from './read-memory.ts';
import { limitUnsentBytes } from './send-buffer.ts';

/** The maximum number of connections that one listen socket accepts in one turn of the loop. */
const MAX_ACCEPTS_PER_TURN = 64;
/** The receive buffers of windows. The kernel doubles the values, because half of a buffer is for its own structures. */
const RECEIVE_BUFFER_BYTES = { reduced: 32_768, small: 4_096 } as const;
/** How long a listen socket stops accepting when no descriptor is left. */
const ACCEPT_PAUSE_MS = 100;
/** The results of connect(2) that are not failures: 0, EINPROGRESS, EALREADY and EISCONN. */
const CONNECT_STARTED: ReadonlySet<number> = new Set([0, -115, -114, -106]);
const EAGAIN = -11;
/**
 * The errors of accept(2) after which the next connection can be accepted: EINTR, and the errors of a connection that has
 * already failed (ECONNABORTED, EPROTO, ENETDOWN, EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, EOPNOTSUPP, ENOPROTOOPT, ENONET).
 */
const SKIPPED_ACCEPT_ERRORS: ReadonlySet<number> = new Set([-4, -103, -71, -100, -112, -113, -101, -95, -92, -64]);

const ceiling = descriptorCeiling();

/** A class and not an object literal, because V8 looks up the getters of a literal at each use. */
class LoopTurns implements Turns {
  get current(): number {
    return eventLoop.turn;
  }

  get nowMs(): number {
    return eventLoop.nowMs;
  }

  runInNext(task: () => void): void {
    eventLoop.resumeLater({ resume: task });
  }

  runAtEnd(task: () => void): void {
    eventLoop.flushLater({ flush: task });
  }
}

/** TCP on system calls: one non-blocking socket for each stream, registered with this thread's `EventLoop`. */
export const epollTransport: TcpTransport = {
  listen: (at, events) => new EpollListenSocket(at, events),
  connect,
  turns: new LoopTurns(),
  writeMemory,
};

class EpollListenSocket implements TcpListenSocket {
  readonly #events: TcpListenSocketEvents;
  /** -1 after the close. */
  #descriptor = -1;
  /** How many connections to accept before the next turn. Doubles while more connections wait. */
  #burst = 1;
  #pause: NodeJS.Timeout | undefined;

  constructor(at: TcpListenOptions, events: TcpListenSocketEvents) {
    this.#events = events;
    const error = this.#open(at);
    // Deferred, because the caller gets this object only when the constructor has returned.
    setImmediate(() => this.#emitResult(error));
  }

  close(): void {
    clearTimeout(this.#pause);
    if (this.#descriptor < 0) return;
    eventLoop.unregister(this.#descriptor);
    closeDescriptor(this.#descriptor);
    this.#descriptor = -1;
  }

  onEvents(): void {
    for (let count = 0; count < this.#burst; count += 1) {
      const descriptor = acceptConnection(this.#descriptor);
      if (descriptor >= 0) this.#take(descriptor);
      else if (descriptor === EAGAIN) {
        this.#burst = Math.max(1, count);
        return;
      } else if (!SKIPPED_ACCEPT_ERRORS.has(descriptor)) {
        this.#pauseAccepting(descriptor);
        return;
      }
      if (this.#descriptor < 0) return;
    }
    this.#burst = Math.min(MAX_ACCEPTS_PER_TURN, this.#burst * 2);
  }

  #take(descriptor: number): void {
    const stream = new EpollStream(descriptor, { peer: acceptedPeer(), isConnecting: false });
    if (descriptor >= ceiling || eventLoop.register(descriptor, STREAM_EVENTS, stream) < 0) {
      resetConnection(descriptor);
      this.#events.onAcceptError('EMFILE');
    } else this.#events.onConnection(stream);
  }

  /** Stops accepting for a while, because the waiting connections would raise the same error again at once. */
  #pauseAccepting(error: number): void {
    eventLoop.modify(this.#descriptor, 0);
    this.#pause = setTimeout(() => eventLoop.modify(this.#descriptor, EPOLLIN), ACCEPT_PAUSE_MS);
    this.#events.onAcceptError(getSystemErrorName(error));
  }

  #open({ address, port, reusePort }: TcpListenOptions): number {
    const family = familyOf(address);
    const descriptor = openSocket(family, SOCK_STREAM);
    if (descriptor < 0) return descriptor;
    const results = [
      setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1),
      reusePort ? setOption(descriptor, SOL_SOCKET, SO_REUSEPORT, 1) : 0,
      family === AF_INET6 ? setOption(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 1) : 0,
      // On Linux, accepted sockets inherit both options from the listen socket. That saves two system calls per connection.
      setOption(descriptor, IPPROTO_TCP, TCP_NODELAY, 1),
      limitUnsentBytes(descriptor, 'full'),
      bindSocket(descriptor, address, port),
    ];
    const error =
      results.find((result) => result < 0) ??
      [listenSocket(descriptor, LISTEN_BACKLOG), eventLoop.register(descriptor, EPOLLIN, this)].find((r) => r < 0);
    if (error !== undefined) {
      eventLoop.unregister(descriptor);
      closeDescriptor(descriptor);
      return error;
    }
    this.#descriptor = descriptor;
    return 0;
  }

  #emitResult(error: number): void {
    if (error < 0) this.#events.onFailed(getSystemErrorName(error));
    else if (this.#descriptor >= 0) this.#events.onListening();
  }
}

function connect({ address, port }: SocketAddress, events: StreamEvents, window: Window = 'full'): EpollStream {
  const descriptor = openSocket(familyOf(address), SOCK_STREAM);
  const stream = new EpollStream(descriptor, { peer: undefined, isConnecting: true, window });
  stream.accept(events);
  if (descriptor < 0) {
    stream.failToOpen(descriptor);
    return stream;
  }
  limitUnsentBytes(descriptor, window);
  // Before connect(2), because the peer then also sends segments that fit into the window.
  if (window !== 'full') setOption(descriptor, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER_BYTES[window]);
  const connecting = connectSocket(descriptor, address, port);
  const error = CONNECT_STARTED.has(connecting) ? eventLoop.register(descriptor, STREAM_EVENTS, stream) : connecting;
  if (error < 0) stream.fail(error);
  return stream;
}
