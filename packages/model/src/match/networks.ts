import { networkMask, parseAddressWords, parseNetworkWords } from './address.ts';

export interface NetworkSet {
  readonly isEmpty: boolean;
  /** Whether any network contains the address. `::ffff:a.b.c.d` counts as IPv4; false for a text that is not an address. */
  contains(address: string): boolean;
}

/**
 * Compiles CIDRs, in any form that `parseCidr` accepts, into a set for look-up; ignores invalid texts. `contains` costs O(log n) and
 * allocates no memory, because every connection calls `contains` and a Service may have thousands of networks.
 *
 * Two networks are either nested or disjoint. The set keeps only the outermost networks, which are therefore disjoint, and sorts them.
 * Binary search finds the last network that begins at or before an address; no other network can contain the address.
 */
export function compileNetworks(texts: readonly string[]): NetworkSet {
  const ipv4Keys: number[] = [];
  const ipv6Networks: Ipv6Network[] = [];
  for (const text of texts) {
    const network = parseNetworkWords(text, words);
    if (network?.family === 'ipv4') ipv4Keys.push(Ipv4Ranges.keyOf(words, network.prefix));
    else if (network !== undefined) ipv6Networks.push(Ipv6Ranges.networkOf(words, network.prefix));
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

/** Scratch memory, shared by all functions of this module. Each call overwrites the words. */
const words = new Uint32Array(4);

/** Sorted disjoint IPv4 networks: see `compileNetworks`. */
export class Ipv4Ranges {
  readonly #firsts: Uint32Array;
  readonly #lasts: Uint32Array;

  /** Takes results of `keyOf` in any order. */
  constructor(keys: readonly number[]) {
    const firsts = new Uint32Array(keys.length);
    const lasts = new Uint32Array(keys.length);
    let count = 0;
    for (const key of Float64Array.from(keys).sort()) {
      const first = Math.floor(key / PREFIX_KEY_SPAN);
      if (count > 0 && first <= (lasts[count - 1] as number)) continue;
      firsts[count] = first;
      lasts[count] = first | ~networkMask(key % PREFIX_KEY_SPAN);
      count += 1;
    }
    this.#firsts = firsts.slice(0, count);
    this.#lasts = lasts.slice(0, count);
  }

  /** Returns a number that encodes a network. In the order of these numbers, each network comes before the networks that it contains. */
  static keyOf(words: Uint32Array, prefix: number): number {
    return (words[0] as number) * PREFIX_KEY_SPAN + prefix;
  }

  contains(words: Uint32Array): boolean {
    const address = words[0] as number;
    let from = 0;
    let to = this.#firsts.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (address < (this.#firsts[middle] as number)) to = middle;
      else from = middle + 1;
    }
    return from > 0 && address <= (this.#lasts[from - 1] as number);
  }
}

/** The factor by which a key multiplies the address. Must exceed 32, the longest prefix, because the key adds the prefix length. */
const PREFIX_KEY_SPAN = 64;

export interface Ipv6Network {
  /** The four words of the first address, the highest first. */
  readonly first: readonly number[];
  readonly prefix: number;
}

/** Sorted disjoint IPv6 networks: see `compileNetworks`. Each address is four consecutive words. */
export class Ipv6Ranges {
  readonly #firsts: Uint32Array;
  readonly #lasts: Uint32Array;
  #count = 0;

  constructor(networks: readonly Ipv6Network[]) {
    const firsts = new Uint32Array(networks.length * 4);
    const lasts = new Uint32Array(networks.length * 4);
    // Sorts each network before the networks that it contains.
    for (const { first, prefix } of networks.toSorted(
      (a, b) => compareAddressAt(a.first, b.first, 0) || a.prefix - b.prefix,
    )) {
      if (this.#count > 0 && compareAddressAt(first, lasts, this.#count - 1) <= 0) continue;
      const at = this.#count * 4;
      for (let word = 0; word < 4; word += 1) {
        const bits = first[word] as number;
        firsts[at + word] = bits;
        lasts[at + word] = bits | ~networkMask(prefix - word * 32);
      }
      this.#count += 1;
    }
    this.#firsts = firsts.slice(0, this.#count * 4);
    this.#lasts = lasts.slice(0, this.#count * 4);
  }

  static networkOf(words: Uint32Array, prefix: number): Ipv6Network {
    return { first: [words[0] as number, words[1] as number, words[2] as number, words[3] as number], prefix };
  }

  contains(words: Uint32Array): boolean {
    let from = 0;
    let to = this.#count;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (compareAddressAt(words, this.#firsts, middle) < 0) to = middle;
      else from = middle + 1;
    }
    return from > 0 && compareAddressAt(words, this.#lasts, from - 1) <= 0;
  }
}

/**
 * Compares `address` with the address at `index` in `others`. Returns a negative number if `address` is smaller, 0 if the addresses are
 * equal.
 */
function compareAddressAt(address: ArrayLike<number>, others: ArrayLike<number>, index: number): number {
  for (let word = 0; word < 4; word += 1) {
    const difference = (address[word] as number) - (others[index * 4 + word] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}
