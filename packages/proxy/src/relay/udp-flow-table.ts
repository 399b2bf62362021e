import type { Client } from '@weir/model/data-plane';
import type { PeerAddress } from '../transport/peer-address.ts';

/** A client of a UDP listener. Host and port identify its flow, and `address` is the text of `host`. */
export interface UdpClient extends Client, PeerAddress {}

/**
 * The flows of one listener, by client host and then by client port. Finding the flow of a datagram takes two look-ups
 * and creates no string. The flows of a client host are ordered by last activity.
 */
export class FlowTable<F extends PeerAddress> {
  readonly #clients = new Map<number | string, Map<number, F>>();

  find(host: number | string, port: number): F | undefined {
    return this.#clients.get(host)?.get(port);
  }

  countOf(host: number | string): number {
    return this.#clients.get(host)?.size ?? 0;
  }

  leastRecentlyActive(host: number | string): F | undefined {
    return this.#clients.get(host)?.values().next().value;
  }

  add(flow: F): void {
    const flows = this.#clients.get(flow.host);
    if (flows === undefined) this.#clients.set(flow.host, new Map([[flow.port, flow]]));
    else flows.set(flow.port, flow);
  }

  /** Marks the flow as the most recently active flow of its client address. */
  touch(flow: F): void {
    const flows = this.#clients.get(flow.host);
    if (flows === undefined || flows.size < 2 || !flows.delete(flow.port)) return;
    flows.set(flow.port, flow);
  }

  /** Removes the flow. Does nothing if another flow has replaced it in the table. */
  remove(flow: F): void {
    const flows = this.#clients.get(flow.host);
    if (flows?.get(flow.port) !== flow) return;
    flows.delete(flow.port);
    if (flows.size === 0) this.#clients.delete(flow.host);
  }

  *all(): Iterable<F> {
    for (const flows of this.#clients.values()) yield* flows.values();
  }
}

export interface TenantFlow {
  readonly tenant: string;
}

const MAX_FLOWS_PER_TENANT = 16_384;

/**
 * Returns the maximum number of flows that one tenant may have in one worker. `descriptors` is the number of
 * descriptors that the process may open. With eight workers, a tenant takes at most half of the descriptors.
 */
export function flowsPerTenant(descriptors: number): number {
  return Math.max(1, Math.min(MAX_FLOWS_PER_TENANT, Math.floor(descriptors / 16)));
}

/**
 * Limits the flows of each tenant in this worker. Otherwise the flows of one tenant could use all descriptors, because
 * client addresses can be forged.
 */
export class TenantFlows<F extends TenantFlow> {
  /**
   * The maximum number of flows per client address and listener. It is half of the tenant's limit, because many clients
   * behind a NAT may share one address, but one address must not use up the tenant's limit.
   */
  readonly maxFlowsPerClient: number;
  readonly #limit: number;
  /** The flows of each tenant, ordered by last activity. */
  readonly #flowsByTenant = new Map<string, Set<F>>();

  constructor(limit: number) {
    this.#limit = limit;
    this.maxFlowsPerClient = Math.ceil(limit / 2);
  }

  /**
   * Returns the flow that must end before the tenant may open a new flow: the least recently active flow if the tenant
   * has reached its limit, otherwise undefined.
   */
  flowToEvict(tenant: string): F | undefined {
    const flows = this.#flowsByTenant.get(tenant);
    return flows === undefined || flows.size < this.#limit ? undefined : flows.values().next().value;
  }

  add(flow: F): void {
    const flows = this.#flowsByTenant.get(flow.tenant);
    if (flows === undefined) this.#flowsByTenant.set(flow.tenant, new Set([flow]));
    else flows.add(flow);
  }

  /** Marks the flow as the most recently active flow of its tenant. */
  touch(flow: F): void {
    const flows = this.#flowsByTenant.get(flow.tenant);
    if (flows?.delete(flow) === true) flows.add(flow);
  }

  remove(flow: F): void {
    const flows = this.#flowsByTenant.get(flow.tenant);
    if (flows?.delete(flow) === true && flows.size === 0) this.#flowsByTenant.delete(flow.tenant);
  }
}
