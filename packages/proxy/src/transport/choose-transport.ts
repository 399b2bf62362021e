import { descriptorLimit } from '../limits/descriptor-limit.ts';
import { netTransport } from './tcp/net-transport.ts';
import { findRawTcpBinding } from './tcp/raw-tcp-binding.ts';
import type { TcpTransport } from './tcp-transport.ts';
import { dgramTransport } from './udp/dgram-transport.ts';
import { findRawUdpBinding } from './udp/raw-udp-binding.ts';
import type { UdpTransport } from './udp-transport.ts';

/**
 * `handles`: libuv's handles below Node's modules. `syscalls`: system calls through `node:ffi`. `node`: the public modules `net` and
 * `dgram`, which cost more CPU.
 */
export type TransportKind = 'handles' | 'syscalls' | 'node';

export const TRANSPORT_KINDS: readonly TransportKind[] = ['handles', 'syscalls', 'node'];
export const DEFAULT_TRANSPORT: TransportKind = 'handles';

export interface Transports {
  readonly tcp: TcpTransport;
  readonly udp: UdpTransport;
}

/** No process has more open files than this on a machine that Weir supports. Some container runtimes set a limit of 2^30. */
const MAX_DESCRIPTORS = 4_194_304;

/** Creates the memory in which a worker records its open descriptors, see `closeAbandoned`. */
export function createDescriptorMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(Math.min(descriptorLimit() ?? MAX_DESCRIPTORS, MAX_DESCRIPTORS));
}

/** Rejects with the reason if this version of Node.js or this machine cannot make the system calls of the transport. */
export async function checkTransport(kind: TransportKind): Promise<void> {
  if (kind !== 'syscalls') return;
  const { checkSyscalls } = await import('./syscalls/check-syscalls.ts');
  checkSyscalls();
}

/** Opens the transports of this thread. The descriptors that they open through FFI are recorded in `descriptors`. */
export async function openTransports(kind: TransportKind, descriptors: SharedArrayBuffer): Promise<Transports> {
  if (kind === 'node') return { tcp: netTransport, udp: dgramTransport };
  if (kind === 'syscalls') return openEpollTransports(descriptors);
  return { tcp: await chooseTcpTransport(), udp: await chooseUdpTransport() };
}

async function openEpollTransports(descriptors: SharedArrayBuffer): Promise<Transports> {
  // Comes first, because the event loop opens its epoll instance when its module is loaded.
  const { recordDescriptors } = await import('./syscalls/sockets.ts');
  recordDescriptors(descriptors);
  const { epollTransport: tcp } = await import('./tcp/epoll-transport.ts');
  const { epollUdpTransport: udp } = await import('./udp/epoll-udp-transport.ts');
  return { tcp, udp };
}

/**
 * Returns `rawTransport` if this version of Node.js has the internal TCP bindings in the known form. Otherwise returns
 * `netTransport`, which is slower and uses only the public `net` module.
 */
export async function chooseTcpTransport(): Promise<TcpTransport> {
  if (findRawTcpBinding() === undefined) return netTransport;
  return (await import('./tcp/raw-transport.ts')).rawTransport;
}

/**
 * Returns `rawUdpTransport` if this version of Node.js has the internal UDP binding in the known form. Otherwise
 * returns `dgramTransport`, which is slower and uses only the public `dgram` module.
 */
async function chooseUdpTransport(): Promise<UdpTransport> {
  if (findRawUdpBinding() === undefined) return dgramTransport;
  return (await import('./udp/raw-udp-transport.ts')).rawUdpTransport;
}

/** Closes the descriptors that an ended worker has recorded and left open. Returns how many there were. */
export async function closeAbandonedDescriptors(descriptors: SharedArrayBuffer): Promise<number> {
  if (!new Uint8Array(descriptors).includes(1)) return 0;
  const { closeAbandoned } = await import('./syscalls/sockets.ts');
  return closeAbandoned(descriptors);
}
