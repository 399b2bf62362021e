import { writeSync } from 'node:fs';
import { Socket, type SocketConstructorOpts } from 'node:net';
import { constants } from 'node:os';

// The only file that touches Node's inner bindings (DEP0111: deprecated in documentation, and warned of only with
// --pending-deprecation). What they offer is looked at before it is used: whatever is missing or of another form makes
// the choice fall on public `net`. Every thread has bindings of its own.
export interface TcpHandle {
  /** Ours: found by the functions below, which are functions of a module, so that no stream needs closures. */
  owner: unknown;
  /** May return the buffer for the next reads. */
  onread: (this: TcpHandle) => Uint8Array | undefined;
  onconnection: (this: TcpHandle, status: number, handle: TcpHandle | undefined) => void;
  /** -1 without a descriptor. */
  readonly fd: number;
  /** What libuv has not brought to the kernel yet. */
  readonly writeQueueSize: number;
  bind(address: string, port: number, flags: number): number;
  bind6(address: string, port: number, flags: number): number;
  listen(backlog: number): number;
  connect(request: HandleRequest, address: string, port: number): number;
  connect6(request: HandleRequest, address: string, port: number): number;
  getpeername(into: { address?: string; port?: number }): number;
  setNoDelay(isOn: boolean): number;
  /** Reads go there, whoever else reads there, too. The handle does not keep it alive. */
  useUserBuffer(buffer: Uint8Array): void;
  readStart(): number;
  readStop(): number;
  /**
   * Tries at once. A number: it is over, 0 or an error; a request: what the kernel did not take waits in libuv, which reads it
   * from `bytes` later, and `bytes` must be kept alive and unchanged until then.
   */
  writeBuffer(request: null, bytes: Uint8Array): number | HandleRequest;
  shutdown(request: HandleRequest): number;
  /** RST. EINVAL, and nothing is closed, while a FIN waits for its turn. */
  reset(): number;
  /** The descriptor is released before it returns. */
  close(): void;
}

export interface HandleRequest {
  owner: unknown;
  oncomplete: (this: HandleRequest, status: number) => void;
  /** Keeps what is being written from the garbage collector: libuv has only its address. */
  bytes?: Uint8Array;
}

export interface RawTcpBinding {
  newSocket(): TcpHandle;
  newServer(): TcpHandle;
  newConnectRequest(): HandleRequest;
  newShutdownRequest(): HandleRequest;
  /** `[READ_RESULT]` is, during `onread`, the count of bytes or an error. */
  readonly state: Int32Array;
  readonly READ_RESULT: number;
  readonly IPV6_ONLY: number;
  readonly REUSE_PORT: number;
}

export const END_OF_FILE = -4095;

export interface TcpBinding {
  readonly TCP?: new (type: number) => TcpHandle;
  readonly TCPConnectWrap?: new () => HandleRequest;
  readonly constants?: Readonly<Record<string, number>>;
}

export interface StreamBinding {
  readonly ShutdownWrap?: new () => HandleRequest;
  readonly streamBaseState?: Int32Array;
  readonly kReadBytesOrError?: number;
  /** Came together with `writeBuffer(null, …)`; an older Node aborts on that call. */
  readonly kLastWriteErr?: number;
}

const REQUIRED_METHODS = [
  ...['bind', 'bind6', 'listen', 'connect', 'connect6', 'getpeername', 'setNoDelay', 'reset', 'close'],
  ...['useUserBuffer', 'readStart', 'readStop', 'writeBuffer', 'shutdown'],
];

/** Undefined where this Node does not have what is needed. */
export function findRawTcpBinding(): RawTcpBinding | undefined {
  try {
    const { binding } = process as unknown as { binding(name: string): unknown };
    return createRawTcpBinding(binding('tcp_wrap') as TcpBinding, binding('stream_wrap') as StreamBinding);
  } catch {
    return undefined;
  }
}

/** What the two inner bindings offer, if it is all that is needed. */
export function createRawTcpBinding(tcp: TcpBinding, stream: StreamBinding): RawTcpBinding | undefined {
  const { TCP, TCPConnectWrap, constants } = tcp;
  const { ShutdownWrap, streamBaseState: state, kReadBytesOrError: READ_RESULT, kLastWriteErr } = stream;
  if (TCP === undefined || TCPConnectWrap === undefined || constants === undefined) return undefined;
  if (ShutdownWrap === undefined || state === undefined) return undefined;
  if (READ_RESULT === undefined || kLastWriteErr === undefined) return undefined;
  const { SOCKET, SERVER, UV_TCP_IPV6ONLY: IPV6_ONLY, UV_TCP_REUSEPORT: REUSE_PORT } = constants;
  if (SOCKET === undefined || SERVER === undefined) return undefined;
  if (IPV6_ONLY === undefined || REUSE_PORT === undefined) return undefined;
  const { prototype } = TCP as unknown as { prototype: Readonly<Record<string, unknown>> };
  if (!REQUIRED_METHODS.every((name) => typeof prototype[name] === 'function')) return undefined;
  return {
    newSocket: () => new TCP(SOCKET),
    newServer: () => new TCP(SERVER),
    newConnectRequest: () => new TCPConnectWrap(),
    newShutdownRequest: () => new ShutdownWrap(),
    state,
    READ_RESULT,
    IPV6_ONLY,
    REUSE_PORT,
  };
}

/** For the modules that stand on it, and are loaded only where it was found. */
export function requireRawTcpBinding(): RawTcpBinding {
  const found = findRawTcpBinding();
  if (found === undefined) throw new Error('this Node has no bare TCP handles');
  return found;
}

/**
 * A public socket that has the handle from now on, with `unread` to be read first. It is for a TLSSocket: what it read itself would go
 * into the buffer that was given to the handle before.
 */
export function socketFromHandle(handle: TcpHandle, unread: Uint8Array): Socket {
  const given = { handle, allowHalfOpen: true, pauseOnCreate: true };
  const socket = new Socket(given as unknown as SocketConstructorOpts);
  if (unread.length > 0) socket.unshift(unread);
  return socket;
}

/**
 * write(2) on a descriptor that does not block: how many bytes the kernel took, 0 when it takes none now, below 0 the
 * negative errno. It never keeps `bytes`, as a write of libuv's would: so a shared buffer may be given here.
 */
export function writeToDescriptor(descriptor: number, bytes: Uint8Array): number {
  // A full send buffer is told by a throw: nobody reads its stack, and making it is what costs.
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return writeSync(descriptor, bytes);
  } catch (thrown) {
    const { code, errno = -constants.errno.EIO } = thrown as NodeJS.ErrnoException;
    return code === 'EAGAIN' ? 0 : errno;
  } finally {
    Error.stackTraceLimit = limit;
  }
}
