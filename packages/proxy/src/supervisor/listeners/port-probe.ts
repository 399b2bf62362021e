import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { getSystemErrorName } from 'node:util';
import type { ListenerKey, Protocol } from '@weir/model/data-plane';
import { findRawTcpBinding, type RawTcpBinding } from '../../transport/tcp/raw-tcp-binding.ts';
import type { SocketAddress } from '../../transport/tcp-transport.ts';

const rawTcpBinding = findRawTcpBinding();

/**
 * Probes whether another process listens on a port. Resolves to undefined if the port is free, otherwise to an errno
 * name. Without a probe, another process of the same user that listens with SO_REUSEPORT would go unnoticed and get
 * some of the clients. The probe binds the port exclusively for a moment, so it must not run for a port on which this
 * process listens.
 */
export function probePort(at: ProbeAddress): Promise<string | undefined> {
  if (at.protocol === 'UDP') return probeUdp(at);
  return rawTcpBinding === undefined ? probeTcp(at) : Promise.resolve(probeRawTcp(at, rawTcpBinding));
}

/**
 * Probes a TCP port with a raw handle. This takes a tenth of the time of `probeTcp`, which matters when a proxy with
 * thousands of ports starts.
 */
function probeRawTcp({ address, port }: SocketAddress, { newServer, IPV6_ONLY }: RawTcpBinding): string | undefined {
  const handle = newServer();
  try {
    const bound = address.includes(':') ? handle.bind6(address, port, IPV6_ONLY) : handle.bind(address, port, 0);
    // libuv reports EADDRINUSE only from listen, not from bind.
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

/** Runs at most one probe of a port at a time, because a second probe would find the socket of the first. */
export class PortProbes {
  readonly #probe: PortProbe;
  readonly #running = new Map<ListenerKey, Promise<string | undefined>>();

  constructor(probe: PortProbe) {
    this.#probe = probe;
  }

  /**
   * Probes a port, or waits for the probe of the port that is already running. Resolves to the same values as
   * `probePort`.
   */
  probe(key: ListenerKey, at: ProbeAddress): Promise<string | undefined> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const probing = this.#probe(at).finally(() => this.#running.delete(key));
    this.#running.set(key, probing);
    return probing;
  }
}
