import { connect, type Socket } from 'node:net';
import { writeLocalProxyHeader } from '../proxy-protocol/write-proxy-header.ts';
import type { WantedCheck } from './wanted-check.ts';

/** A connection to the endpoint, with the PROXY header that it expects; without a client behind it. */
export function connectForCheck({ endpoint, proxyProtocol }: WantedCheck): Socket {
  const socket = connect({ host: endpoint.address, port: endpoint.port });
  // Who is asked closes when it likes, also after the answer was taken.
  socket.on('error', () => undefined);
  if (proxyProtocol !== null) socket.write(writeLocalProxyHeader(proxyProtocol));
  return socket;
}

/** By RST: with FIN each check would leave a TIME_WAIT and hold a local port for a minute. */
export function closeCheckSocket(socket: Socket): void {
  if (socket.connecting || socket.destroyed) socket.destroy();
  else socket.resetAndDestroy();
}
