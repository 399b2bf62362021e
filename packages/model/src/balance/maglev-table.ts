// The look-up table of Maglev (D. Eisenbud et al., Maglev: A Fast and Reliable Software Network Load Balancer, NSDI 2016,
// section 3.4): each endpoint has its own order of all slots, and in turn each takes the next one in it that is free. All get
// equally many, and when one goes few slots change hands beside its own.
import type { EndpointStats } from './endpoint-stats.ts';
import { hashText } from './hash.ts';

/** A prime, so that every skip visits all slots. The larger it is beside the endpoints, the fewer change hands. */
export const MAGLEV_SLOTS = 65_537;
/** A number of an endpoint is 16 bits; the last one means "free". */
export const MAX_MAGLEV_ENDPOINTS = 65_535;

/** Filled by `fillMaglevSlots` for these endpoints. It may be older than the pool: what has left is passed over. */
export interface MaglevTable {
  readonly slots: Uint16Array;
  readonly endpoints: readonly EndpointStats[];
}

const FREE_SLOT = 0xffff;
const OFFSET_SEED = 0x6a09e667;
const SKIP_SEED = 0xbb67ae85;

/**
 * Writes into each slot the index of the endpoint that it belongs to; `keys` tell endpoints apart. The same keys give each
 * slot to the same key in any order of them, on every proxy. Without keys there is nothing to write. `slots` has a prime
 * length above the number of keys; more keys than that, or than 65,535: a broken invariant, thrown.
 */
export function fillMaglevSlots(slots: Uint16Array, keys: readonly string[]): void {
  const size = slots.length;
  if (keys.length > MAX_MAGLEV_ENDPOINTS || keys.length > size) {
    throw new Error(`${keys.length} endpoints do not fit into ${size} slots`);
  }
  const order = Uint32Array.from(keys.keys()).sort((a, b) => ((keys[a] as string) < (keys[b] as string) ? -1 : 1));
  const next = Uint32Array.from(keys, (key) => hashText(key, OFFSET_SEED) % size);
  const skip = Uint32Array.from(keys, (key) => (hashText(key, SKIP_SEED) % (size - 1)) + 1);
  slots.fill(FREE_SLOT);
  let taken = 0;
  while (keys.length > 0) {
    for (let turn = 0; turn < order.length; turn += 1) {
      const endpoint = order[turn] as number;
      const step = skip[endpoint] as number;
      let slot = next[endpoint] as number;
      while (slots[slot] !== FREE_SLOT) slot = (slot + step) % size;
      slots[slot] = endpoint;
      next[endpoint] = (slot + step) % size;
      taken += 1;
      if (taken === size) return;
    }
  }
}
