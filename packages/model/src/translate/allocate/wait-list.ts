import type { Decision } from '../decision.ts';
import { MultiMap } from '../multi-map.ts';
import type { ServiceRecord } from '../service-registry.ts';

interface WaitEntry {
  readonly resources: readonly string[];
  readonly tenant: string | undefined;
}

/** The Services that did not get everything that they request, indexed by the resources and the tenant limits that they wait for. */
export class WaitList {
  readonly #entries = new Map<ServiceRecord, WaitEntry>();
  /** By `portKey`, `portShareKey` and `portHostKey`. */
  readonly #byResource = new MultiMap<ServiceRecord>();
  readonly #byTenant = new MultiMap<ServiceRecord>();

  get size(): number {
    return this.#entries.size;
  }

  /** Adds a Service, or replaces what it waits for. */
  put(
    record: ServiceRecord,
    { wantedResources, quotaDependency }: Pick<Decision, 'wantedResources' | 'quotaDependency'>,
  ): void {
    const before = this.#entries.get(record);
    const tenant = quotaDependency?.tenant;
    // Most Services wait for the same resources as before.
    if (before?.tenant === tenant && before?.resources.join() === wantedResources.join()) return;
    this.delete(record);
    this.#entries.set(record, { resources: wantedResources, tenant });
    for (const key of wantedResources) this.#byResource.add(key, record);
    if (tenant !== undefined) this.#byTenant.add(tenant, record);
  }

  delete(record: ServiceRecord): void {
    const entry = this.#entries.get(record);
    if (entry === undefined) return;
    this.#entries.delete(record);
    for (const key of entry.resources) this.#byResource.delete(key, record);
    if (entry.tenant !== undefined) this.#byTenant.delete(entry.tenant, record);
  }

  waitersForResource(key: string): ReadonlySet<ServiceRecord> {
    return this.#byResource.get(key);
  }

  waitersForTenant(tenant: string): ReadonlySet<ServiceRecord> {
    return this.#byTenant.get(tenant);
  }
}
