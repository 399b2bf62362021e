// Finds the clients with the most bytes or connections in bounded memory, however many clients there are. The algorithm is
// Space-Saving (Metwally, Agrawal and El Abbadi, 2005) with weights; the merge follows Agarwal et al., Mergeable Summaries
// (2012).

/** The number of clients that a sketch lists. A client with more than 1/`MAX_TOP_CLIENTS` of the total is always listed. */
export const MAX_TOP_CLIENTS = 100;

/** The true amount of a client is at least `estimate` - `error`, and at most `estimate`. */
export interface TopClient {
  readonly client: string;
  readonly estimate: number;
  readonly error: number;
}

/** The result of a sketch. For all listed clients, `estimate` is at least `unlistedAtMost`. */
export interface TopClients {
  /** The amounts of all clients together. */
  readonly total: number;
  /** The maximum amount of a client that is not in `clients`. */
  readonly unlistedAtMost: number;
  /** At most `MAX_TOP_CLIENTS`, the greatest estimate first. */
  readonly clients: readonly TopClient[];
}

export const NO_TOP_CLIENTS: TopClients = { total: 0, unlistedAtMost: 0, clients: [] };

/** Counts the amounts of clients, each exactly while there are at most `MAX_TOP_CLIENTS` clients. */
export class ClientSketch {
  #total = 0;
  readonly #clients: string[] = [];
  readonly #estimates: number[] = [];
  readonly #errors: number[] = [];
  readonly #indexByClient = new Map<string, number>();

  /** Adds an amount of at least 0 to a client. Takes at most `MAX_TOP_CLIENTS` comparisons. */
  add(client: string, amount: number): void {
    this.#total += amount;
    const known = this.#indexByClient.get(client);
    if (known !== undefined) this.#estimates[known] = (this.#estimates[known] as number) + amount;
    else if (this.#clients.length < MAX_TOP_CLIENTS) {
      this.#indexByClient.set(client, this.#clients.length);
      this.#clients.push(client);
      this.#estimates.push(amount);
      this.#errors.push(0);
    } else this.#replaceSmallest(client, amount);
  }

  get result(): TopClients {
    const clients = this.#clients.map((client, index) => ({
      client,
      estimate: this.#estimates[index] as number,
      error: this.#errors[index] as number,
    }));
    const unlistedAtMost = clients.length < MAX_TOP_CLIENTS ? 0 : (this.#estimates[this.#indexOfSmallest()] as number);
    return { total: this.#total, unlistedAtMost, clients: clients.sort(byEstimate) };
  }

  /** Replaces the client with the smallest estimate. The amount of the new client so far is unknown, but at most this estimate. */
  #replaceSmallest(client: string, amount: number): void {
    const index = this.#indexOfSmallest();
    const smallest = this.#estimates[index] as number;
    this.#indexByClient.delete(this.#clients[index] as string);
    this.#indexByClient.set(client, index);
    this.#clients[index] = client;
    this.#estimates[index] = smallest + amount;
    this.#errors[index] = smallest;
  }

  #indexOfSmallest(): number {
    let smallest = 0;
    for (let index = 1; index < this.#estimates.length; index += 1)
      if ((this.#estimates[index] as number) < (this.#estimates[smallest] as number)) smallest = index;
    return smallest;
  }
}

/**
 * Merges the results of sketches that have counted different connections. In the merged result, too, a client with more than
 * 1/`MAX_TOP_CLIENTS` of the total is listed.
 */
export function mergeTopClients(results: readonly TopClients[]): TopClients {
  const total = results.reduce((sum, result) => sum + result.total, 0);
  // A client that no result lists has at most this amount.
  const maxUnlisted = results.reduce((sum, { unlistedAtMost }) => sum + unlistedAtMost, 0);
  const merged = new Map<string, { client: string; estimate: number; error: number }>();
  for (const { clients, unlistedAtMost } of results) {
    for (const { client, estimate, error } of clients) {
      const entry = merged.get(client) ?? { client, estimate: maxUnlisted, error: maxUnlisted };
      // This result lists the client, so its `unlistedAtMost` does not count for the client.
      entry.estimate += estimate - unlistedAtMost;
      entry.error += error - unlistedAtMost;
      merged.set(client, entry);
    }
  }
  const sorted = [...merged.values()].sort(byEstimate);
  const firstOmitted = sorted[MAX_TOP_CLIENTS];
  return {
    total,
    unlistedAtMost: firstOmitted === undefined ? maxUnlisted : firstOmitted.estimate,
    clients: sorted.slice(0, MAX_TOP_CLIENTS),
  };
}

function byEstimate(a: TopClient, b: TopClient): number {
  return b.estimate - a.estimate || (a.client < b.client ? -1 : Number(a.client > b.client));
}
