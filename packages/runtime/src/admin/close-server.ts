import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../clock/clock.ts';

/** How long an answer under way may take when the server closes. */
const CLOSE_TIMEOUT_MS = 1_000;

/** The connections of this server, those in their TLS handshake included, of which the server itself knows nothing yet. */
export function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

/** The port is free at once. Idle keep-alive connections end now, those in use after their answer, or after a second. */
export async function closeServer(server: Server, sockets: ReadonlySet<Socket>, clock: Clock): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  const deadline = clock.setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, CLOSE_TIMEOUT_MS);
  await closed;
  deadline.cancel();
}
