import type { Client } from '../match/route.ts';

// Hash functions with the same results on every proxy and worker. The results are well distributed but not cryptographic: a client with
// many addresses can find addresses that hash to the same endpoint.

/** Returns a 32-bit unsigned hash of a text. Each seed gives an independent hash function. */
export function hashText(text: string, seed: number): number {
  let hash = seed | 0;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
    // Without this step, similar texts (10.0.0.1, 10.0.0.2) get related hashes under every seed.
    hash ^= hash >>> 15;
  }
  return mix(hash);
}

/** Returns a 32-bit unsigned hash of two 32-bit hashes. The order of the two hashes matters. */
export function hashPair(first: number, second: number): number {
  return mix(first ^ Math.imul(second ^ (second >>> 16), 0x9e3779b1));
}

/** The last step of MurmurHash3 (A. Appleby): each bit of the input changes each bit of the result with a probability of one half. */
function mix(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A 32-bit unsigned hash of a client; connections with equal hashes get the same endpoint. */
export type ClientHash = (client: Client) => number;
const CLIENT_SEED = 0x510e527f;
/** Returns the same hash for all connections from one address. */
export const hashClientAddress: ClientHash = (client) => hashText(client.address, CLIENT_SEED);
/** Returns the same hash for all datagrams of one flow, no matter which worker receives them. */
export const hashClientFlow: ClientHash = (client) => hashPair(hashText(client.address, CLIENT_SEED), client.port);
