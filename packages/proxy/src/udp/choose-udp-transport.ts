import { findRawUdpBinding } from './bare-udp-binding.ts';
import { dgramTransport } from './dgram-transport.ts';
import type { UdpTransport } from './transport.ts';

/** Bare handles where this Node has them. */
export async function chooseUdpTransport(): Promise<UdpTransport> {
  if (findRawUdpBinding() === undefined) return dgramTransport;
  return (await import('./bare-udp-transport.ts')).rawUdpTransport;
}
