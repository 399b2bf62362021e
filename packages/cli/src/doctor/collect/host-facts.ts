import { networkInterfaces } from 'node:os';
import { kernelWarnings } from '@weir/proxy';
import type { HostFact } from '../facts.ts';

/** Of the machine that this runs on. */
export async function collectHost(): Promise<HostFact> {
  const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
  return { addresses, kernelWarnings: process.platform === 'linux' ? await kernelWarnings() : undefined };
}
