import type { ServiceSettings } from '@weir/model';
import type { Arrived } from './arrived.ts';

/** What the endpoint gets before anything is relayed: all that was read of the client already. */
export function firstBytesFor(_settings: ServiceSettings, { prelude }: Arrived): Uint8Array {
  return prelude;
}
