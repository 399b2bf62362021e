import { netTransport } from './tcp/net-transport.ts';
import { findRawTcpBinding } from './tcp/raw-tcp-binding.ts';
import type { TcpTransport } from './tcp-transport.ts';
import { dgramTransport } from './udp/dgram-transport.ts';
import { findRawUdpBinding } from './udp/raw-udp-binding.ts';
import type { UdpTransport } from './udp-transport.ts';

/**
 * Returns the transport on raw handles if this Node.js version has them in the known form, otherwise the slower
 * transport on the public `net`.
 */
export async function chooseTcpTransport(): Promise<TcpTransport> {
  if (findRawTcpBinding() === undefined) return netTransport;
  const { rawTransport } = await import('./tcp/raw-transport.ts');
  return rawTransport;
}

/**
 * Returns the transport on raw handles if this Node.js version has them, otherwise the slower transport on the public
 * `dgram`.
 */
export async function chooseUdpTransport(): Promise<UdpTransport> {
  if (findRawUdpBinding() === undefined) return dgramTransport;
  return (await import('./udp/raw-udp-transport.ts')).rawUdpTransport;
}
