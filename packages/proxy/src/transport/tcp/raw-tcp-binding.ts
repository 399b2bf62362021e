import { writeSync } from 'node:fs';
import { Socket, type SocketConstructorOpts } from 'node:net';
import { constants } from 'node:os';

// Node's internal TCP bindings. Access to them is deprecated (DEP0111), with a warning only under
// --pending-deprecation. If a required part is missing, Weir uses the public `net` module instead.
export interface TcpHandle {
  /**
   * The stream that owns the handle. Weir sets this field, so that the module-level callbacks find the stream without a
   * closure.
   */
  owner: unknown;
  /** Called after a read. May return another buffer for the following reads. */
  onread: (this: TcpHandle) => Uint8Array | undefined;
  onconnection: (this: TcpHandle, status: number, handle: TcpHandle | undefined) => void;
  /** The file descriptor, or -1 if there is none. */
  readonly fd: number;
  /** The number of bytes that libuv has not written to the kernel yet. */
  readonly writeQueueSize: number;
  bind(address: string, port: number, flags: number): number;
  bind6(address: string, port: number, flags: number): number;
  listen(backlog: number): number;
  connect(request: HandleRequest, address: string, port: number): number;
  connect6(request: HandleRequest, address: string, port: number): number;
  getpeername(into: { address?: string; port?: number }): number;
  setNoDelay(isOn: boolean): number;
  /** Sets the buffer for reads. Several handles may share a buffer. The handle does not keep the buffer alive. */
  useUserBuffer(buffer: Uint8Array): void;
  readStart(): number;
  readStop(): number;
  /**
   * Tries to write at once. Returns 0 if the kernel has taken all bytes, or a negative error code. Otherwise returns a
   * request: libuv writes the rest later, and `bytes` must stay alive and unchanged until the request completes.
   */
  writeBuffer(request: null, bytes: Uint8Array): number | HandleRequest;
  shutdown(request: HandleRequest): number;
  /** Sends RST and closes the handle. While a FIN is queued, returns EINVAL and closes nothing. */
  reset(): number;
  /** Closes the handle. The descriptor is released when `close` returns. */
  close(): void;
}

export interface HandleRequest {
  owner: unknown;
  oncomplete: (this: HandleRequest, status: number) => void;
  /** The bytes of the write. This reference keeps them alive while libuv, which has only their address, writes them. */
  bytes?: Uint8Array;
}

export interface RawTcpBinding {
  newSocket(): TcpHandle;
  newServer(): TcpHandle;
  newConnectRequest(): HandleRequest;
  newShutdownRequest(): HandleRequest;
  /** During `onread`, `state[READ_RESULT]` is the number of bytes read or a negative error code. */
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
  /** Exists in the versions of Node.js that support `writeBuffer(null, …)`. Older versions abort on that call. */
  readonly kLastWriteErr?: number;
}

const REQUIRED_METHODS = [
  ...['bind', 'bind6', 'listen', 'connect', 'connect6', 'getpeername', 'setNoDelay', 'reset', 'close'],
  ...['useUserBuffer', 'readStart', 'readStop', 'writeBuffer', 'shutdown'],
];

/** Returns the binding, or undefined if this version of Node.js lacks a required part. */
export function findRawTcpBinding(): RawTcpBinding | undefined {
  try {
    const { binding } = process as unknown as { binding(name: string): unknown };
    return createRawTcpBinding(binding('tcp_wrap') as TcpBinding, binding('stream_wrap') as StreamBinding);
  } catch {
    return undefined;
  }
}

/** Returns one binding made from two internal bindings, or undefined if they lack a required part. */
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

/**
 * Returns the binding, or throws if it is missing. Called only by modules that are loaded after `findRawTcpBinding` has
 * found the binding.
 */
export function requireRawTcpBinding(): RawTcpBinding {
  const found = findRawTcpBinding();
  if (found === undefined) throw new Error('this version of Node.js has no raw TCP handles');
  return found;
}

/**
 * Returns a public socket that owns the handle and delivers `unread` first. Only a TLSSocket may read from the socket,
 * because the socket's own reads would go into the shared buffer that `useUserBuffer` has set.
 */
export function socketFromHandle(handle: TcpHandle, unread: Uint8Array): Socket {
  const given = { handle, allowHalfOpen: true, pauseOnCreate: true };
  const socket = new Socket(given as unknown as SocketConstructorOpts);
  if (unread.length > 0) socket.unshift(unread);
  return socket;
}

/**
 * Calls write(2) on a non-blocking descriptor. Returns the number of bytes that the kernel took, 0 if the send buffer
 * is full, or a negative errno. A write by libuv may keep `bytes`; this function never does, so `bytes` may be in a
 * shared buffer.
 */
export function writeToDescriptor(descriptor: number, bytes: Uint8Array): number {
  // If the send buffer is full, `writeSync` throws. Without a limit of 0, building the error's stack would be most of
  // the cost.
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
