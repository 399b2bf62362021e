import { networkMask } from './cidr.ts';

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
