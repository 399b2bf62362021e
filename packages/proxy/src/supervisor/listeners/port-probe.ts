import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { ListenerKey, Protocol } from '@weir/model/data-plane';
import type { TransportKind } from '../../transport/choose-transport.ts';
import type { SocketAddress } from '../../transport/tcp-transport.ts';

export type PortProbe = (at: ProbeAddress) => Promise<string | undefined>;

/**
 * Returns a function that probes whether another process listens on a port. The function resolves to undefined if the
 * port is free, otherwise to an errno name. Without a probe, another process of the same user that listens with
 * SO_REUSEPORT would go unnoticed and get some of the clients. The probe binds the port exclusively for a moment, so it
 * must not run for a port on which this process listens.
 */
export function portProbeFor(transport: TransportKind): PortProbe {
  if (transport === 'node') return (at) => (at.protocol === 'UDP' ? probeUdp(at) : probeTcp(at));
  return async (at) => (await import('../../transport/syscalls/probe-port.ts')).probePort(at);
}

function probeTcp({ address, port }: SocketAddress): Promise<string | undefined> {
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

/** Runs at most one probe of a port at a time, because a second probe would find the socket of the first. */
export class PortProbes {
  readonly #probe: PortProbe;
  readonly #running = new Map<ListenerKey, Promise<string | undefined>>();

  constructor(probe: PortProbe) {
    this.#probe = probe;
  }

  /**
   * Probes a port, or waits for the probe of the port that is already running. Resolves to the same values as
   * `PortProbe`.
   */
  probe(key: ListenerKey, at: ProbeAddress): Promise<string | undefined> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const probing = this.#probe(at).finally(() => this.#running.delete(key));
    this.#running.set(key, probing);
    return probing;
  }
}
