import { netTransport } from './tcp/net-transport.ts';
import { findRawTcpBinding } from './tcp/raw-tcp-binding.ts';
import type { TcpTransport } from './tcp-transport.ts';
import { dgramTransport } from './udp/dgram-transport.ts';
import { findRawUdpBinding } from './udp/raw-udp-binding.ts';
import type { UdpTransport } from './udp-transport.ts';

/** Bare handles where this Node has them as we know them; else public `net`, which is right everywhere and costs more. */
export async function chooseTcpTransport(): Promise<TcpTransport> {
  if (findRawTcpBinding() === undefined) return netTransport;
  const { rawTransport } = await import('./tcp/raw-transport.ts');
  return rawTransport;
}

/** Bare handles where this Node has them. */
export async function chooseUdpTransport(): Promise<UdpTransport> {
  if (findRawUdpBinding() === undefined) return dgramTransport;
  return (await import('./udp/raw-udp-transport.ts')).rawUdpTransport;
}
