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
