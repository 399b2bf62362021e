import { patternBytes } from '@weir/testkit';

/** Sent over and over; a whole block lost or repeated shows only in the count, anything less in the bytes. */
export const BLOCK_BYTES: number = 1024 * 1024;

export function bulkBlock(): Buffer {
  return patternBytes({ seed: 1, offset: 0, length: BLOCK_BYTES });
}
