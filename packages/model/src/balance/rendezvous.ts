import { endpointKey } from '../match/matcher.ts';
import type { EndpointLoad } from './balancer.ts';

/**
 * The endpoint with the highest hash of (client, endpoint): the same on every proxy without shared state, and when one
 * goes only its own clients move (rendezvous hashing: D. Thaler, C. Ravishankar, IEEE/ACM ToN 6(1), 1998).
 */
export function rendezvous(loads: readonly EndpointLoad[], source: string): EndpointLoad | undefined {
  let best: EndpointLoad | undefined;
  let highest = -1;
  for (const load of loads) {
    const score = hash(`${source}|${endpointKey(load.endpoint)}`);
    if (score > highest) {
      highest = score;
      best = load;
    }
  }
  return best;
}

/** FNV-1a with the finishing mix of MurmurHash3: 32 bits, unsigned. Bare FNV leaves neighbours in order. */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
