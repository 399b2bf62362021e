// The only file here that touches Node's inner binding (as `tcp/bare-binding.ts` does for TCP: DEP0111). Whatever is missing
// or of another form makes the choice fall on public `dgram`.

export interface UdpHandle {
  /** Ours: found by functions of a module, so that no socket needs closures. */
  owner: unknown;
  /** `count` below 0: an error. `bytes` are a buffer of their own for each datagram: Node gives no choice. */
  onmessage: (this: UdpHandle, count: number, handle: UdpHandle, bytes: Uint8Array, from: UdpSource) => void;
  onerror: (this: UdpHandle) => void;
  /** -1 without a descriptor. */
  readonly fd: number;
  bind(address: string, port: number, flags: number): number;
  bind6(address: string, port: number, flags: number): number;
  connect(address: string, port: number): number;
  connect6(address: string, port: number): number;
  recvStart(): number;
  /**
   * With address and port, or without for a connected socket. More than 0: the kernel has taken it, and `request` was not
   * used. 0: it waits in libuv, which tells `request` later. Less: an error.
   */
  send(request: SendRequest, bytes: readonly Uint8Array[], count: 1, isTold: true): number;
  send(...to: [SendRequest, readonly Uint8Array[], 1, port: number, address: string, isTold: true]): number;
  send6(...to: [SendRequest, readonly Uint8Array[], 1, port: number, address: string, isTold: true]): number;
  bufferSize(size: number, isReceive: boolean, failure: object): number | undefined;
  /** The descriptor is released before it returns. */
  close(): void;
}

export interface UdpSource {
  readonly address: string;
  readonly port: number;
}

export interface SendRequest {
  owner: unknown;
  /** libuv has only their address: kept from the garbage collector. */
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

/** Undefined where this Node does not have what is needed. */
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

/** For the modules that stand on it, and are loaded only where it was found. */
export function requireRawUdpBinding(): RawUdpBinding {
  const found = findRawUdpBinding();
  if (found === undefined) throw new Error('this Node has no bare UDP handles');
  return found;
}
