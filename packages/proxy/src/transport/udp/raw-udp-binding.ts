// Node's internal UDP binding, which is deprecated (DEP0111, see `tcp/raw-tcp-binding.ts`). If a required part is
// missing, Weir uses the public `dgram` module instead.

export interface UdpHandle {
  /**
   * The socket that owns the handle. Weir sets this field, so that the module-level callbacks find the socket without a
   * closure.
   */
  owner: unknown;
  /** Called with a datagram of `count` bytes, for which Node allocates a buffer. A `count` below 0 is an error. */
  onmessage: (this: UdpHandle, count: number, handle: UdpHandle, bytes: Uint8Array, from: UdpSource) => void;
  onerror: (this: UdpHandle) => void;
  /** The file descriptor, or -1 if there is none. */
  readonly fd: number;
  bind(address: string, port: number, flags: number): number;
  bind6(address: string, port: number, flags: number): number;
  connect(address: string, port: number): number;
  connect6(address: string, port: number): number;
  recvStart(): number;
  /**
   * Sends a datagram. On a connected socket, port and address are omitted. Returns a positive number if the kernel has
   * taken the datagram; `request` is then unused. Returns 0 if libuv keeps the datagram and completes `request` later,
   * or a negative error code.
   */
  send(request: SendRequest, bytes: readonly Uint8Array[], count: 1, hasCallback: true): number;
  send(...to: [SendRequest, readonly Uint8Array[], 1, port: number, address: string, hasCallback: true]): number;
  send6(...to: [SendRequest, readonly Uint8Array[], 1, port: number, address: string, hasCallback: true]): number;
  bufferSize(size: number, isReceive: boolean, error: object): number | undefined;
  /** Closes the handle. The descriptor is released when `close` returns. */
  close(): void;
}

export interface UdpSource {
  readonly address: string;
  readonly port: number;
}

export interface SendRequest {
  owner: unknown;
  /** The bytes of the datagram. This reference keeps them alive while libuv has only their address. */
  bytes: Uint8Array;
  oncomplete: (this: SendRequest, status: number) => void;
}

export interface RawUdpBinding {
  newHandle(): UdpHandle;
  newRequest(): SendRequest;
  readonly IPV6_ONLY: number;
  readonly REUSE_PORT: number;
}

interface UdpBinding {
  readonly UDP?: new () => UdpHandle;
  readonly SendWrap?: new () => SendRequest;
  readonly constants?: Readonly<Record<string, number>>;
}

const REQUIRED_METHODS = ['bind', 'bind6', 'connect', 'connect6', 'recvStart', 'send', 'send6', 'bufferSize', 'close'];

/** Returns the binding, or undefined if this version of Node.js lacks a required part. */
export function findRawUdpBinding(): RawUdpBinding | undefined {
  try {
    const { binding } = process as unknown as { binding(name: string): UdpBinding };
    const { UDP, SendWrap, constants } = binding('udp_wrap');
    const { UV_UDP_IPV6ONLY: IPV6_ONLY, UV_UDP_REUSEPORT: REUSE_PORT } = constants ?? {};
    if (UDP === undefined || SendWrap === undefined || IPV6_ONLY === undefined || REUSE_PORT === undefined)
      return undefined;
    const { prototype } = UDP as unknown as { prototype: Readonly<Record<string, unknown>> };
    if (!REQUIRED_METHODS.every((name) => typeof prototype[name] === 'function')) return undefined;
    return { newHandle: () => new UDP(), newRequest: () => new SendWrap(), IPV6_ONLY, REUSE_PORT };
  } catch {
    return undefined;
  }
}

/**
 * Returns the binding, or throws if it is missing. Called only by modules that are loaded after `findRawUdpBinding` has
 * found the binding.
 */
export function requireRawUdpBinding(): RawUdpBinding {
  const found = findRawUdpBinding();
  if (found === undefined) throw new Error('this version of Node.js has no raw UDP handles');
  return found;
}
