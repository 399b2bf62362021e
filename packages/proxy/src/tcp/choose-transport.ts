import { findRawTcpBinding } from './bare-binding.ts';
import { netTransport } from './net-transport.ts';
import type { TcpTransport } from './transport.ts';

/** Bare handles where this Node has them as we know them; else public `net`, which is right everywhere and costs more. */
export async function chooseTcpTransport(): Promise<TcpTransport> {
  if (findRawTcpBinding() === undefined) return netTransport;
  const { rawTransport } = await import('./bare-transport.ts');
  return rawTransport;
}
