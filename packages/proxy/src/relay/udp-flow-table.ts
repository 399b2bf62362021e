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

export interface TenantFlow {
  readonly tenant: string;
}

const MAX_FLOWS_PER_TENANT = 16_384;

/** Of one worker, where the process may have so many descriptors: eight workers leave at least half of them to others. */
export function flowsPerTenant(descriptors: number): number {
  return Math.max(1, Math.min(MAX_FLOWS_PER_TENANT, Math.floor(descriptors / 16)));
}

/** The flows of each tenant in this worker, so that none takes all descriptors: client addresses are easily forged. */
export class TenantFlows<F extends TenantFlow> {
  /** What one client address may have of one listener: many clients may stand behind it, but not all. */
  readonly maxFlowsPerClient: number;
  readonly #limit: number;
  /** In the order of `stir`. */
  readonly #flowsByTenant = new Map<string, Set<F>>();

  constructor(limit: number) {
    this.#limit = limit;
    this.maxFlowsPerClient = Math.ceil(limit / 2);
  }

  /** The longest silent one, which has to go before this tenant may have another one. */
  flowToEvict(tenant: string): F | undefined {
    const crowd = this.#flowsByTenant.get(tenant);
    return crowd === undefined || crowd.size < this.#limit ? undefined : crowd.values().next().value;
  }

  add(flow: F): void {
    const crowd = this.#flowsByTenant.get(flow.tenant);
    if (crowd === undefined) this.#flowsByTenant.set(flow.tenant, new Set([flow]));
    else crowd.add(flow);
  }

  /** It has spoken: it is now the last of its tenant that is to go. */
  touch(flow: F): void {
    const crowd = this.#flowsByTenant.get(flow.tenant);
    if (crowd?.delete(flow) === true) crowd.add(flow);
  }

  remove(flow: F): void {
    const crowd = this.#flowsByTenant.get(flow.tenant);
    if (crowd?.delete(flow) === true && crowd.size === 0) this.#flowsByTenant.delete(flow.tenant);
  }
}
