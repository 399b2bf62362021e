import { descriptorLimit } from '../limits/descriptor-limit.ts';
import { netTransport } from './tcp/net-transport.ts';
import type { TcpTransport } from './tcp-transport.ts';
import { dgramTransport } from './udp/dgram-transport.ts';
import type { UdpTransport } from './udp-transport.ts';

/** `syscalls`: system calls through `node:ffi`. `node`: the public modules `net` and `dgram`, which cost more CPU. */
export type TransportKind = 'syscalls' | 'node';

export const TRANSPORT_KINDS: readonly TransportKind[] = ['syscalls', 'node'];
export const DEFAULT_TRANSPORT: TransportKind = 'syscalls';

/** `openssl`: the functions of OpenSSL through `node:ffi`, with `syscalls` only. `node`: Node's TLSSocket, which costs more CPU. */
export type TlsKind = 'openssl' | 'node';

export const TLS_KINDS: readonly TlsKind[] = ['openssl', 'node'];
export const DEFAULT_TLS: TlsKind = 'openssl';

export interface Transports {
  readonly tcp: TcpTransport;
  readonly udp: UdpTransport;
}

/** No process has more open files than this on a machine that Weir supports. Some container runtimes set a limit of 2^30. */
const MAX_DESCRIPTORS = 4_194_304;

/** Creates the memory in which a worker records its open descriptors, for `closeAbandonedDescriptors`. */
export function createDescriptorMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(Math.min(descriptorLimit() ?? MAX_DESCRIPTORS, MAX_DESCRIPTORS));
}

/** Rejects with the reason if this version of Node.js or this machine cannot make the system calls of the transport. */
export async function checkTransport(kind: TransportKind): Promise<void> {
  if (kind !== 'syscalls') return;
  const { checkSyscalls } = await import('./syscalls/check-syscalls.ts');
  checkSyscalls();
}

/** Rejects with the reason if this version of Node.js does not offer the functions of OpenSSL that `openssl` needs. */
export async function checkTls(): Promise<void> {
  const { checkOpenssl } = await import('./syscalls/check-openssl.ts');
  checkOpenssl();
}

export interface OpenTransportsOptions {
  readonly transport: TransportKind;
  readonly tls?: TlsKind;
  /** Where the descriptors that the transports open through FFI are recorded, see `createDescriptorMemory`. */
  readonly descriptors: SharedArrayBuffer;
}

/** Opens the transports of this thread. */
export async function openTransports({ transport, tls, descriptors }: OpenTransportsOptions): Promise<Transports> {
  if (transport === 'node') return { tcp: netTransport, udp: dgramTransport };
  // Recording begins before the transports are loaded, because their module `event-loop.ts` opens its epoll instance.
  const { recordDescriptors } = await import('./syscalls/sockets.ts');
  recordDescriptors(descriptors);
  const { epollTransport: tcp } = await import('./tcp/epoll-transport.ts');
  const { epollUdpTransport: udp } = await import('./udp/epoll-udp-transport.ts');
  if (tls !== 'openssl') return { tcp, udp };
  const { opensslTlsServer } = await import('./tls/openssl-server.ts');
  return { tcp: { ...tcp, tlsServer: opensslTlsServer }, udp };
}

/** Resets the connections and closes the other descriptors that an ended worker has left open. Returns their number. */
export async function closeAbandonedDescriptors(descriptors: SharedArrayBuffer): Promise<number> {
  if (!new Uint8Array(descriptors).includes(1)) return 0;
  const { closeAbandoned } = await import('./syscalls/sockets.ts');
  return closeAbandoned(descriptors);
}
