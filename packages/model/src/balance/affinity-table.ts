// What ClientIP affinity remembers: a table of fixed size in the memory that all workers of a proxy share. It is written
// without a lock. Each word of the key is stored XORed with the endpoint (R. Hyatt, T. Mann, A lock-less transposition-table
// implementation, ICGA Journal 25(1), 2002): an entry of which two workers wrote one half each is nobody's, and what is lost
// is one memory, never the truth.

export interface AffinityTable {
  /**
   * Hash of the endpoint that the client was given last, until `timeout` has passed since; both times in whole seconds, so
   * it may last up to a second longer, and never ends early.
   */
  lookup(client: AffinityKey, now: number, timeout: number): number | undefined;
  record(client: AffinityKey, endpoint: number, now: number): void;
}

/** 64 bits, as two unsigned words, of (Service, port, client). */
export interface AffinityKey {
  high: number;
  low: number;
}

const ENTRY_WORDS = 4;
const HIGH = 0;
const LOW = 1;
const ENDPOINT = 2;
/** One more than the second, so that 0 is an entry that was never written. */
const LAST_SEEN = 3;

/** A client may stand in any of so many entries; when they are full the one that was seen longest ago goes. */
const PROBED_ENTRIES = 8;

/** For 262,144 clients in 4 MiB, of which the kernel gives only what is written. */
export const AFFINITY_TABLE_BYTES: number = 262_144 * ENTRY_WORDS * Uint32Array.BYTES_PER_ELEMENT;

/** The memory in `words` (a power of two of entries, at least 8; zeros at first): the same for all that share them. */
export function createAffinityTable(words: Uint32Array): AffinityTable {
  const entries = words.length / ENTRY_WORDS;
  if (entries < PROBED_ENTRIES || (entries & (entries - 1)) !== 0)
    throw new Error(`${entries} entries are no power of two`);
  const at = (low: number, step: number): number => ((low + step) & (entries - 1)) * ENTRY_WORDS;
  const isOf = ({ high, low }: AffinityKey, entry: number): boolean => {
    const endpoint = words[entry + ENDPOINT] as number;
    return (
      words[entry + LAST_SEEN] !== 0 &&
      ((words[entry + HIGH] as number) ^ endpoint) >>> 0 === high &&
      ((words[entry + LOW] as number) ^ endpoint) >>> 0 === low
    );
  };
  return {
    lookup(client, now, timeout) {
      for (let step = 0; step < PROBED_ENTRIES; step += 1) {
        const entry = at(client.low, step);
        const endpoint = words[entry + ENDPOINT] as number;
        if (!isOf(client, entry)) continue;
        return now + 1 - (words[entry + LAST_SEEN] as number) <= timeout ? endpoint : undefined;
      }
      return undefined;
    },
    record(client, endpoint, now) {
      let chosen = at(client.low, 0);
      for (let step = 0; step < PROBED_ENTRIES; step += 1) {
        const entry = at(client.low, step);
        if (isOf(client, entry)) {
          chosen = entry;
          break;
        }
        if ((words[entry + LAST_SEEN] as number) < (words[chosen + LAST_SEEN] as number)) chosen = entry;
      }
      words[chosen + HIGH] = client.high ^ endpoint;
      words[chosen + LOW] = client.low ^ endpoint;
      words[chosen + ENDPOINT] = endpoint;
      words[chosen + LAST_SEEN] = now + 1;
    },
  };
}
