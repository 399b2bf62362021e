// The memory of ClientIP affinity: a hash table of fixed size that holds the last endpoint of each client. All workers of a proxy share the
// table and write without locks. Each word of a key is stored XORed with the hash of the endpoint (R. Hyatt, T. Mann, A lock-less
// transposition-table implementation, ICGA Journal 25(1), 2002). If two workers write the same entry at once, the entry then matches no
// client: one client loses its affinity, but no client gets the endpoint of another client.

export interface AffinityTable {
  /**
   * Returns the hash of the endpoint that the client got last; undefined if the client is unknown or got that endpoint more than `timeout`
   * seconds ago. `now` and `timeout` are whole seconds, so an entry may last up to a second longer than its timeout, but never shorter.
   */
  lookup(client: AffinityKey, now: number, timeout: number): number | undefined;
  /** Records that the client got the endpoint with this hash at `now` (whole seconds). */
  record(client: AffinityKey, endpoint: number, now: number): void;
}

/** A 64-bit hash of (Service, port, client), as two unsigned words. */
export interface AffinityKey {
  high: number;
  low: number;
}

const ENTRY_WORDS = 4;
const HIGH = 0;
const LOW = 1;
const ENDPOINT = 2;
/** The index of the word that holds the second of the last use, plus one. The word is 0 in an entry that was never written. */
const LAST_SEEN = 3;

/**
 * The number of adjacent entries in which one client may be stored. If all of these entries are in use, the least recently used of them is
 * replaced.
 */
const PROBED_ENTRIES = 8;

/**
 * The size of the table: 4 MiB, for 262,144 clients. Unused parts cost no memory, because the kernel allocates only the pages that are
 * written.
 */
export const AFFINITY_TABLE_BYTES: number = 262_144 * ENTRY_WORDS * Uint32Array.BYTES_PER_ELEMENT;

/**
 * Creates the affinity table in the memory `words`: four words for each entry, initially zero. Throws unless the number of entries
 * is a power of two of at least 8.
 */
export function createAffinityTable(words: Uint32Array): AffinityTable {
  const entries = words.length / ENTRY_WORDS;
  if (entries < PROBED_ENTRIES || (entries & (entries - 1)) !== 0)
    throw new Error(
      `invalid affinity table of ${entries} entries: expected a power of two of at least ${PROBED_ENTRIES}`,
    );
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
