import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

export type SocketBytes = { readonly sent: number; readonly received: number };

/** Returns a function that sums up the bytes of all client sockets that this process has opened since this call. */
export function countSocketBytes(): () => SocketBytes {
  const open = new Set<Socket>();
  let sent = 0;
  let received = 0;
  subscribe('net.client.socket', (message) => {
    const { socket } = message as { readonly socket: Socket };
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      sent += socket.bytesWritten;
      received += socket.bytesRead;
    });
  });
  return () => {
    const sockets = [...open];
    return {
      sent: sockets.reduce((sum, socket) => sum + (socket.bytesWritten ?? 0), sent),
      received: sockets.reduce((sum, socket) => sum + (socket.bytesRead ?? 0), received),
    };
  };
}
