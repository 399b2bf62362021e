import { parseAddressWords } from './address-words.ts';
import { parseNetworkWords } from './cidr.ts';
import { Ipv4Ranges } from './ipv4-ranges.ts';
import { type Ipv6Network, Ipv6Ranges } from './ipv6-ranges.ts';

export interface NetworkSet {
  readonly isEmpty: boolean;
  /** Whether any of them holds the address. IPv4 that arrives as `::ffff:a.b.c.d` counts as IPv4; what is no address is in none. */
  contains(address: string): boolean;
}

/**
 * Networks for look-up, of CIDRs as `parseCidr` takes them; others are left out. Asking costs O(log n) and allocates nothing:
 * it is done for each connection, and a tenant may have thousands of them. Law: agrees with a linear search.
 *
 * Of two networks one holds the other, or they have nothing in common. So those within another are left out, and what is left is in
 * the order of its first addresses and of its last: an address is in the last network that begins at it or before, or in none.
 */
export function compileNetworks(texts: readonly string[]): NetworkSet {
  const ipv4Keys: number[] = [];
  const ipv6Networks: Ipv6Network[] = [];
  for (const text of texts) {
    const shape = parseNetworkWords(text, words);
    if (shape?.family === 'ipv4') ipv4Keys.push(Ipv4Ranges.keyOf(words, shape.prefix));
    else if (shape !== undefined) ipv6Networks.push(Ipv6Ranges.networkOf(words, shape.prefix));
  }
  const ipv4 = new Ipv4Ranges(ipv4Keys);
  const ipv6 = new Ipv6Ranges(ipv6Networks);
  return {
    isEmpty: ipv4Keys.length + ipv6Networks.length === 0,
    contains: (address) => {
      const family = parseAddressWords(address, words);
      if (family === undefined) return false;
      return family === 'ipv4' ? ipv4.contains(words) : ipv6.contains(words);
    },
  };
}

/** What is read just now. Never kept from one call to the next. */
const words = new Uint32Array(4);
