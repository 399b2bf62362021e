import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { SocketAddress } from '../tcp/transport.ts';
import type { ProbeAt } from './port-checks.ts';

/**
 * Whether somebody else listens there: `reusePort` would hide a process of the same user, and clients would be shared
 * with it. Binds alone for a moment, so it must not be asked about a port that this process listens on. Resolves to the
 * errno code, or undefined when the port is free.
 */
export function probe(at: ProbeAt): Promise<string | undefined> {
  return at.protocol === 'TCP' ? probeTcp(at) : probeUdp(at);
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
