import { descriptorLimit } from '../open-descriptors.ts';

/**
 * For what else the process opens. Less than what `forConnections` keeps back: that is where connections are counted and told
 * whose they are; here is the last line, for whatever takes descriptors between its looks.
 */
const MIN_FREE_DESCRIPTORS = 64;

/**
 * A connection whose descriptor is this or higher is not to be accepted. At the limit itself libuv takes and closes connections
 * without a word to us, and nothing else of the process can open anything.
 */
export function descriptorCeiling(): number {
  const limit = descriptorLimit();
  return limit === undefined ? Number.POSITIVE_INFINITY : limit - Math.min(MIN_FREE_DESCRIPTORS, Math.floor(limit / 4));
}
