import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { getSystemErrorName } from 'node:util';
import type { ListenerKey, Protocol } from '@weir/model/data-plane';
import { findRawTcpBinding, type RawTcpBinding } from '../../transport/tcp/raw-tcp-binding.ts';
import type { SocketAddress } from '../../transport/tcp-transport.ts';

const rawTcpBinding = findRawTcpBinding();

/**
 * Whether somebody else listens there: `reusePort` would hide a process of the same user, and clients would be shared
 * with it. Binds alone for a moment, so it must not be asked about a port that this process listens on. Resolves to the
 * errno code, or undefined when the port is free.
 */
export function probePort(at: ProbeAddress): Promise<string | undefined> {
  if (at.protocol === 'UDP') return probeUdp(at);
  return rawTcpBinding === undefined ? probeTcp(at) : Promise.resolve(probeRawTcp(at, rawTcpBinding));
}

/** At a tenth of the cost of a server, of which a start needs one for each of thousands of ports. */
function probeRawTcp({ address, port }: SocketAddress, { newServer, IPV6_ONLY }: RawTcpBinding): string | undefined {
  const handle = newServer();
  try {
    const bound = address.includes(':') ? handle.bind6(address, port, IPV6_ONLY) : handle.bind(address, port, 0);
    // That the port is taken comes out when it is listened to: libuv has put it off.
    const error = bound < 0 ? bound : handle.listen(1);
    return error < 0 ? getSystemErrorName(error) : undefined;
  } finally {
    handle.close();
  }
}

export function probeTcp({ address, port }: SocketAddress): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.resetAndDestroy());
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host: address, port, exclusive: true }, () => {
      server.close();
      resolve(undefined);
    });
  });
}

function probeUdp({ address, port }: SocketAddress): Promise<string | undefined> {
  return new Promise((resolve) => {
    const isIPv6 = address.includes(':');
    const socket = createSocket({ type: isIPv6 ? 'udp6' : 'udp4', ipv6Only: isIPv6 });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      socket.close();
      resolve(error.code ?? error.message);
    });
    socket.bind({ address, port, exclusive: true }, () => {
      socket.close();
      resolve(undefined);
    });
  });
}

export interface ProbeAddress extends SocketAddress {
  readonly protocol: Protocol;
}

export type PortProbe = (at: ProbeAddress) => Promise<string | undefined>;

/** Asks whether ports are free, never twice at once for the same one: the second would find the first there. */
export class PortProbes {
  readonly #probe: PortProbe;
  readonly #running = new Map<ListenerKey, Promise<string | undefined>>();

  constructor(probe: PortProbe) {
    this.#probe = probe;
  }

  /** Resolves to the errno code of what is in the way, or undefined. */
  probe(key: ListenerKey, at: ProbeAddress): Promise<string | undefined> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const asked = this.#probe(at).finally(() => this.#running.delete(key));
    this.#running.set(key, asked);
    return asked;
  }
}
