// Access to Node's internal UDP binding (deprecated as DEP0111, see `tcp/raw-tcp-binding.ts`). If anything is missing
// or has another form, the public `dgram` module is used instead.

export interface UdpHandle {
  /** Set by Weir: module-level callbacks find the socket here, so that a socket needs no closures. */
  owner: unknown;
  /** `count` below 0 is an error. Node allocates a buffer per datagram. */
  onmessage: (this: UdpHandle, count: number, handle: UdpHandle, bytes: Uint8Array, from: UdpSource) => void;
  onerror: (this: UdpHandle) => void;
  /** -1 if there is no descriptor. */
  readonly fd: number;
  bind(address: string, port: number, flags: number): number;
  bind6(address: string, port: number, flags: number): number;
  connect(address: string, port: number): number;
  connect6(address: string, port: number): number;
  recvStart(): number;
  /**
   * Address and port are omitted for a connected socket. Returns above 0 if the kernel has taken the datagram
   * (`request` is unused), 0 if libuv keeps it and completes `request` later, below 0 an error.
   */
  send(request: SendRequest, bytes: readonly Uint8Array[], count: 1, hasCallback: true): number;
  send(...to: [SendRequest, readonly Uint8Array[], 1, port: number, address: string, hasCallback: true]): number;
  send6(...to: [SendRequest, readonly Uint8Array[], 1, port: number, address: string, hasCallback: true]): number;
  bufferSize(size: number, isReceive: boolean, error: object): number | undefined;
  /** Releases the descriptor before it returns. */
  close(): void;
}

export interface UdpSource {
  readonly address: string;
  readonly port: number;
}

export interface SendRequest {
  owner: unknown;
  /** Keeps the bytes alive while libuv has their address. */
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

/** Returns undefined if this Node.js version lacks a required part. */
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

/** Returns the binding, for modules that are loaded only if it was found. */
export function requireRawUdpBinding(): RawUdpBinding {
  const found = findRawUdpBinding();
  if (found === undefined) throw new Error('this version of Node.js has no raw UDP handles');
  return found;
}
