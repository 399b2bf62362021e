// UDP on the public `dgram` module: works on every version of Node.js, but is slower than system calls.
import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { countSocket } from '../../limits/descriptor-count.ts';
import { hostOf, hostText } from '../peer-address.ts';
import type { SocketAddress } from '../tcp-transport.ts';
import {
  UDP_RECEIVE_BUFFER_BYTES,
  type UdpBindOptions,
  type UdpEndpointSocket,
  type UdpEndpointSocketEvents,
  type UdpListenSocket,
  type UdpListenSocketEvents,
  type UdpRecipient,
  type UdpTransport,
} from '../udp-transport.ts';

export const dgramTransport: UdpTransport = { bind, connect };

function bind({ address, port, reusePort }: UdpBindOptions, events: UdpListenSocketEvents): UdpListenSocket {
  const socket = socketFor(address, { reusePort, ipv6Only: address.includes(':') });
  let isOpen = true;
  const close = (): void => {
    if (isOpen) socket.close();
    isOpen = false;
  };
  let isListening = false;
  socket.on('listening', () => {
    isListening = true;
    trySet(() => socket.setRecvBufferSize(UDP_RECEIVE_BUFFER_BYTES));
    setImmediate(() => isOpen && events.onListening());
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    // An error after binding belongs to no particular datagram and does not close the socket.
    if (isListening || !isOpen) return;
    close();
    setImmediate(() => events.onFailed(codeOf(error)));
  });
  socket.on('message', (bytes, from) => {
    if (isOpen) guarded(events, () => events.onMessage(bytes, hostOf(from.address), from.port));
  });
  socket.bind({ address, port, exclusive: true });
  return {
    close,
    flush: () => undefined,
    takeDropped: () => 0,
    send(bytes: Uint8Array, to: UdpRecipient): void {
      // An attacker can forge a datagram from port 0, and `dgram` would throw when Weir replies.
      if (!isOpen || to.port === 0 || socket.getSendQueueCount() > 0) return;
      socket.send(bytes, to.port, hostText(to.host), (error) => {
        if (isOpen && !error) to.onSent(bytes.length);
      });
    },
  };
}

function connect({ address, port }: SocketAddress, events: UdpEndpointSocketEvents): UdpEndpointSocket | undefined {
  const socket = socketFor(address, {});
  // False until the socket is connected, because a failed `connect` is reported by the return value and not by
  // `onError`.
  let isOpen = false;
  const emitError = (error: NodeJS.ErrnoException, unsent?: Uint8Array): void => {
    if (isOpen) guarded(events, () => events.onError(codeOf(error), unsent));
  };
  socket.on('error', (error) => emitError(error));
  // Connects synchronously, because `lookup` below is synchronous.
  socket.connect(port, address);
  if (!isConnected(socket)) {
    socket.close();
    return undefined;
  }
  isOpen = true;
  socket.on('message', (bytes) => {
    if (isOpen) guarded(events, () => events.onMessage(bytes));
  });
  return {
    send(bytes: Uint8Array): void {
      if (!isOpen || socket.getSendQueueCount() > 0) return;
      socket.send(bytes, (error) => {
        if (error) emitError(error, bytes);
      });
    },
    close(): void {
      if (isOpen) socket.close();
      isOpen = false;
    },
  };
}

/** Returns the address itself. Replaces the asynchronous resolver, which `dgram` calls even for IP addresses. */
const lookup: SocketOptions['lookup'] = (address, family, callback) => {
  callback(null, address, typeof family === 'number' ? family : (family.family as number));
};

function socketFor(address: string, options: Partial<SocketOptions>): Socket {
  const socket = createSocket({ ...options, type: address.includes(':') ? 'udp6' : 'udp4', lookup });
  countSocket(socket);
  return socket;
}

function isConnected(socket: Socket): boolean {
  try {
    socket.remoteAddress();
    return true;
  } catch {
    return false;
  }
}

function guarded(events: { onThrow(thrown: unknown): void }, act: () => void): void {
  try {
    act();
  } catch (thrown) {
    events.onThrow(thrown);
  }
}

function trySet(set: () => void): void {
  try {
    set();
  } catch {
    // The kernel's default size is good enough.
  }
}

function codeOf(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message;
}
