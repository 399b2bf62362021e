import { networkMask } from './cidr.ts';

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
