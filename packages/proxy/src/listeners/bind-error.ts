import { formatHostPort, listenError } from '@weir/runtime';
import type { SocketAddress } from '../tcp/transport.ts';

const BIND_FIXES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'stop that process, or give the Service another port',
  EACCES: 'grant the capability to the proxy, or give the Service a port from 1024 on',
  EADDRNOTAVAIL: "correct the node's addresses (annotation weir.dev/addresses)",
};

/** Why a listener could not be bound, for the Service's condition: what, where, and what to do. */
export function bindErrorMessage(code: string, { address, port }: SocketAddress): string {
  const cause = Object.assign(new Error(code), { code });
  const advice = BIND_FIXES[code] ?? 'see the log of the proxy; it is tried again';
  return listenError(cause, { address: formatHostPort({ host: address, port }), advice }).message;
}
