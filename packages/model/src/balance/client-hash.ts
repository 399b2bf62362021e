import type { Client } from '../match/client.ts';
import { hashPair, hashText } from './hash.ts';

/** 32 bits, unsigned, of what is to meet the same endpoint always. */
export type ClientHash = (client: Client) => number;

const CLIENT_SEED = 0x510e527f;

/** All that come from one address. */
export const hashClientAddress: ClientHash = (client) => hashText(client.address, CLIENT_SEED);

/** One flow: also when the kernel gives its datagrams to another worker it meets the same endpoint. */
export const hashClientFlow: ClientHash = (client) => hashPair(hashText(client.address, CLIENT_SEED), client.port);
