// The look-up table of Maglev (D. Eisenbud et al., Maglev: A Fast and Reliable Software Network Load Balancer, NSDI 2016, section 3.4).
// Each endpoint has its own permutation of all slots. The endpoints take turns, and each endpoint takes the next free slot of its
// permutation. So all endpoints get almost equally many slots, and when an endpoint leaves, few slots of other endpoints change.
import type { EndpointStats } from './endpoint-stats.ts';
import { hashText } from './hash.ts';

/**
 * The number of slots: a prime, so that a step of any size visits all slots. The more slots there are for each endpoint, the smaller the
 * share of slots that move when endpoints change.
 */
export const MAGLEV_SLOTS = 65_537;
/** The most endpoints of a table: an endpoint's index has 16 bits, and the highest index marks a free slot. */
export const MAX_MAGLEV_ENDPOINTS = 65_535;

/** A table that may be older than the pool. The balancer skips endpoints that have left. */
export interface MaglevTable {
  /** For each slot, an index into `endpoints`, as written by `fillMaglevSlots`. */
  readonly slots: Uint16Array;
  readonly endpoints: readonly EndpointStats[];
}

const FREE_SLOT = 0xffff;
const OFFSET_SEED = 0x6a09e667;
const SKIP_SEED = 0xbb67ae85;

/**
 * Assigns each slot to an endpoint. `keys` holds a unique key for each endpoint; each slot gets an index into `keys`. Equal sets of keys
 * give equal assignments on every proxy, whatever the order of the keys. If `keys` is empty, all slots stay free. The length of `slots`
 * must be a prime. Throws if there are more keys than slots, or more than 65,535 keys.
 */
export function fillMaglevSlots(slots: Uint16Array, keys: readonly string[]): void {
  const size = slots.length;
  if (keys.length > MAX_MAGLEV_ENDPOINTS || keys.length > size) {
    throw new Error(`cannot fill ${size} Maglev slots with ${keys.length} endpoints: too many endpoints`);
  }
  const order = Uint32Array.from(keys.keys()).sort((a, b) => ((keys[a] as string) < (keys[b] as string) ? -1 : 1));
  const next = Uint32Array.from(keys, (key) => hashText(key, OFFSET_SEED) % size);
  const skip = Uint32Array.from(keys, (key) => (hashText(key, SKIP_SEED) % (size - 1)) + 1);
  slots.fill(FREE_SLOT);
  let filledSlots = 0;
  while (keys.length > 0) {
    for (let turn = 0; turn < order.length; turn += 1) {
      const endpoint = order[turn] as number;
      const step = skip[endpoint] as number;
      let slot = next[endpoint] as number;
      while (slots[slot] !== FREE_SLOT) slot = (slot + step) % size;
      slots[slot] = endpoint;
      next[endpoint] = (slot + step) % size;
      filledSlots += 1;
      if (filledSlots === size) return;
    }
  }
}
