import type { Client } from '../match/route.ts';

// Hashes that are the same on every proxy and in every worker. They spread; they do not keep secrets: who owns many
// addresses can find some that meet the same endpoint.

/** 32 bits, unsigned, of a text; each seed is another function. */
export function hashText(text: string, seed: number): number {
  let hash = seed | 0;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
    // Without it neighbours (10.0.0.1, 10.0.0.2) keep their distance under every seed.
    hash ^= hash >>> 15;
  }
  return mix(hash);
}

/** 32 bits, unsigned, of two such numbers; their order counts. */
export function hashPair(first: number, second: number): number {
  return mix(first ^ Math.imul(second ^ (second >>> 16), 0x9e3779b1));
}

/** The finishing step of MurmurHash3 (A. Appleby): each bit of the input changes each bit of the result half of the time. */
function mix(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** 32 bits, unsigned, of what is to meet the same endpoint always. */
export type ClientHash = (client: Client) => number;
const CLIENT_SEED = 0x510e527f;
/** All that come from one address. */
export const hashClientAddress: ClientHash = (client) => hashText(client.address, CLIENT_SEED);
/** One flow: also when the kernel gives its datagrams to another worker it meets the same endpoint. */
export const hashClientFlow: ClientHash = (client) => hashPair(hashText(client.address, CLIENT_SEED), client.port);
