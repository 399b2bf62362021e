import { getSystemErrorName } from 'node:util';
import type { Protocol } from '@weir/model/data-plane';
import type { SocketAddress } from '../tcp-transport.ts';
import { AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, SO_REUSEADDR, SOCK_DGRAM, SOCK_STREAM, SOL_SOCKET } from './layouts.ts';
import { bindSocket, closeDescriptor, familyOf, listenSocket, openSocket, setOption } from './sockets.ts';

/** Binds a port exclusively for a moment. Returns undefined if the port is free, otherwise an errno name. */
export function probePort(at: SocketAddress & { readonly protocol: Protocol }): string | undefined {
  const descriptor = openSocket(familyOf(at.address), at.protocol === 'UDP' ? SOCK_DGRAM : SOCK_STREAM);
  if (descriptor < 0) return getSystemErrorName(descriptor);
  try {
    const result = at.protocol === 'UDP' ? bindTo(descriptor, at) : listenOn(descriptor, at);
    return result < 0 ? getSystemErrorName(result) : undefined;
  } finally {
    closeDescriptor(descriptor);
  }
}

function listenOn(descriptor: number, at: SocketAddress): number {
  // Without this option, connections that were closed a minute ago would occupy the port.
  setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  const bound = bindTo(descriptor, at);
  return bound < 0 ? bound : listenSocket(descriptor, 1);
}

function bindTo(descriptor: number, { address, port }: SocketAddress): number {
  if (familyOf(address) === AF_INET6) setOption(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  return bindSocket(descriptor, address, port);
}
