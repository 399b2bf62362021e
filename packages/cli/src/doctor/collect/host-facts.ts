import { networkInterfaces } from 'node:os';
import { kernelAdvice } from '@weir/proxy';
import type { HostFact } from '../facts.ts';

/** Of the machine that this runs on. */
export async function hostFacts(): Promise<HostFact> {
  const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
  return { addresses, kernelAdvice: process.platform === 'linux' ? await kernelAdvice() : undefined };
}
