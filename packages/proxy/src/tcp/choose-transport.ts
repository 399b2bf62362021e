import { findBareBinding } from './bare-binding.ts';
import { netTransport } from './net-transport.ts';
import type { Transport } from './transport.ts';

/** Bare handles where this Node has them as we know them; else public `net`, which is right everywhere and costs more. */
export async function chooseTransport(): Promise<Transport> {
  if (findBareBinding() === undefined) return netTransport;
  const { bareTransport } = await import('./bare-transport.ts');
  return bareTransport;
}
