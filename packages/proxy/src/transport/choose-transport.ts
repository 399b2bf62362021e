import { netTransport } from './tcp/net-transport.ts';
import { findRawTcpBinding } from './tcp/raw-tcp-binding.ts';
import type { TcpTransport } from './tcp-transport.ts';
import { dgramTransport } from './udp/dgram-transport.ts';
import { findRawUdpBinding } from './udp/raw-udp-binding.ts';
import type { UdpTransport } from './udp-transport.ts';

/**
 * Returns `rawTransport` if this version of Node.js has the internal TCP bindings in the known form. Otherwise returns
 * `netTransport`, which is slower and uses only the public `net` module.
 */
export async function chooseTcpTransport(): Promise<TcpTransport> {
  if (findRawTcpBinding() === undefined) return netTransport;
  const { rawTransport } = await import('./tcp/raw-transport.ts');
  return rawTransport;
}

/**
 * Returns `rawUdpTransport` if this version of Node.js has the internal UDP binding in the known form. Otherwise
 * returns `dgramTransport`, which is slower and uses only the public `dgram` module.
 */
export async function chooseUdpTransport(): Promise<UdpTransport> {
  if (findRawUdpBinding() === undefined) return dgramTransport;
  return (await import('./udp/raw-udp-transport.ts')).rawUdpTransport;
}
