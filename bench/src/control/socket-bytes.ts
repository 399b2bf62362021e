import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

/** Bytes that this process has sent to, and got from, whomever it has connected to since `watchWire` was called. */
export type SocketBytes = { readonly sent: number; readonly received: number };

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
    const all = [...open];
    return {
      sent: all.reduce((sum, socket) => sum + (socket.bytesWritten ?? 0), sent),
      received: all.reduce((sum, socket) => sum + (socket.bytesRead ?? 0), received),
    };
  };
}
