/** What flows of one listener are told apart by. */
export interface FlowKey {
  readonly address: string;
  readonly port: number;
}

/**
 * The flows of one listener by client address, then port: a datagram costs two look-ups and no new string, and what one
 * client has is at hand to be bounded. Those of a client are in the order of `stir`.
 */
export class FlowTable<F extends FlowKey> {
  readonly #clients = new Map<string, Map<number, F>>();

  find(address: string, port: number): F | undefined {
    return this.#clients.get(address)?.get(port);
  }

  countOf(address: string): number {
    return this.#clients.get(address)?.size ?? 0;
  }

  /** The one that was not stirred for longest. */
  leastRecentlyActive(address: string): F | undefined {
    return this.#clients.get(address)?.values().next().value;
  }

  add(flow: F): void {
    const flows = this.#clients.get(flow.address);
    if (flows === undefined) this.#clients.set(flow.address, new Map([[flow.port, flow]]));
    else flows.set(flow.port, flow);
  }

  /** It has spoken: it is now the last of its client that is to go. */
  touch(flow: F): void {
    const flows = this.#clients.get(flow.address);
    if (flows === undefined || flows.size < 2 || !flows.delete(flow.port)) return;
    flows.set(flow.port, flow);
  }

  /** Not another one that has taken its place meanwhile. */
  remove(flow: F): void {
    const flows = this.#clients.get(flow.address);
    if (flows?.get(flow.port) !== flow) return;
    flows.delete(flow.port);
    if (flows.size === 0) this.#clients.delete(flow.address);
  }

  *all(): Iterable<F> {
    for (const flows of this.#clients.values()) yield* flows.values();
  }
}
