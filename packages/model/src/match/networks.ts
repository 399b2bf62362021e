import { parseAddressWords } from './address.ts';
import { networkMask, parseNetworkWords } from './cidr.ts';

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

/** IPv4 networks in order, none within another: see `compileNetworks`. */
export class Ipv4Ranges {
  readonly #firsts: Uint32Array;
  readonly #lasts: Uint32Array;

  /** `keys` of `keyOf`, in any order. */
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

  /** One number for a network: sorted by it, whoever holds others comes before them. */
  static keyOf(words: Uint32Array, prefix: number): number {
    return (words[0] as number) * PREFIX_KEY_SPAN + prefix;
  }

  /** Whether one of them holds the address. */
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

/** More than there are lengths of a prefix. */
const PREFIX_KEY_SPAN = 64;

/** By the words of its first address, the highest first. */
export interface Ipv6Network {
  readonly first: readonly number[];
  readonly prefix: number;
}

/** IPv6 networks in order, none within another: see `compileNetworks`. Four words are an address. */
export class Ipv6Ranges {
  readonly #firsts: Uint32Array;
  readonly #lasts: Uint32Array;
  #count = 0;

  constructor(networks: readonly Ipv6Network[]) {
    const firsts = new Uint32Array(networks.length * 4);
    const lasts = new Uint32Array(networks.length * 4);
    // Whoever holds others comes before them.
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

  /** Whether one of them holds the address. */
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

/** Of an address and the `index`th of others: negative where it comes first, 0 where they are the same. */
function compareAddressAt(address: ArrayLike<number>, others: ArrayLike<number>, index: number): number {
  for (let word = 0; word < 4; word += 1) {
    const difference = (address[word] as number) - (others[index * 4 + word] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}
