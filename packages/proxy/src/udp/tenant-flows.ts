export interface TenantFlow {
  readonly tenant: string;
}

const MOST_FLOWS = 16_384;

/** Of one worker, where the process may have so many descriptors: eight workers leave at least half of them to others. */
export function flowsPerTenant(descriptors: number): number {
  return Math.max(1, Math.min(MOST_FLOWS, Math.floor(descriptors / 16)));
}

/** The flows of each tenant in this worker, so that none takes all descriptors: client addresses are easily forged. */
export class TenantFlows<F extends TenantFlow> {
  /** What one client address may have of one listener: many clients may stand behind it, but not all. */
  readonly mostPerClient: number;
  readonly #limit: number;
  /** In the order of `stir`. */
  readonly #crowds = new Map<string, Set<F>>();

  constructor(limit: number) {
    this.#limit = limit;
    this.mostPerClient = Math.ceil(limit / 2);
  }

  /** The longest silent one, which has to go before this tenant may have another one. */
  inTheWay(tenant: string): F | undefined {
    const crowd = this.#crowds.get(tenant);
    return crowd === undefined || crowd.size < this.#limit ? undefined : crowd.values().next().value;
  }

  add(flow: F): void {
    const crowd = this.#crowds.get(flow.tenant);
    if (crowd === undefined) this.#crowds.set(flow.tenant, new Set([flow]));
    else crowd.add(flow);
  }

  /** It has spoken: it is now the last of its tenant that is to go. */
  stir(flow: F): void {
    const crowd = this.#crowds.get(flow.tenant);
    if (crowd?.delete(flow) === true) crowd.add(flow);
  }

  remove(flow: F): void {
    const crowd = this.#crowds.get(flow.tenant);
    if (crowd?.delete(flow) === true && crowd.size === 0) this.#crowds.delete(flow.tenant);
  }
}
