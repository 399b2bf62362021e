import type { ListenerEntry } from '../../table/entry.ts';
import type { Decision } from '../decision.ts';
import { MultiMap } from '../multi-map.ts';
import type { ServiceRecord } from '../service-registry.ts';
import { portHostKey, portKey, portShareKey } from './port-key.ts';
import type { QuotaDependency } from './quota.ts';

/** Services of a tenant that asked the same of its limits, and were told the same. */
export interface QuotaWaitGroup extends QuotaDependency {
  readonly members: Set<ServiceRecord>;
}

/** Services that did not get all that they ask for, found by what might change that. */
export class WaitList {
  /** With what they are found by. */
  readonly #waiters = new Map<
    ServiceRecord,
    { readonly wants: readonly string[]; readonly group: string | undefined }
  >();
  /** By `portKey`, `shareKey` and `claimKey`. */
  readonly #byPort = new MultiMap<ServiceRecord>();
  readonly #groups = new Map<string, QuotaWaitGroup>();
  /** By tenant, the keys of its groups. */
  readonly #byTenant = new MultiMap<string>();

  get size(): number {
    return this.#waiters.size;
  }

  /** In place of what it waited for before, which is mostly the same. */
  put(
    record: ServiceRecord,
    { wantedResources, quotaDependency }: Pick<Decision, 'wantedResources' | 'quotaDependency'>,
  ): void {
    const before = this.#waiters.get(record);
    const group = quotaDependency && groupKeyOf(quotaDependency);
    this.#waiters.set(record, { wants: wantedResources, group });
    if (before === undefined || before.wants.join() !== wantedResources.join()) {
      for (const key of before?.wants ?? []) this.#byPort.delete(key, record);
      for (const key of wantedResources) this.#byPort.add(key, record);
    }
    if (before?.group === group) return;
    this.#leave(record, before?.group);
    if (quotaDependency !== undefined && group !== undefined)
      this.#join(record, { key: group, asked: quotaDependency });
  }

  delete(record: ServiceRecord): void {
    const before = this.#waiters.get(record);
    if (before === undefined) return;
    this.#waiters.delete(record);
    for (const key of before.wants) this.#byPort.delete(key, record);
    this.#leave(record, before.group);
  }

  /** Who could use one of these. */
  waitersForPorts(keys: Iterable<string>): Set<ServiceRecord> {
    const found = new Set<ServiceRecord>();
    for (const key of keys) for (const record of this.#byPort.get(key)) found.add(record);
    return found;
  }

  *groupsOfTenant(tenant: string): Iterable<QuotaWaitGroup> {
    for (const key of this.#byTenant.get(tenant)) {
      const group = this.#groups.get(key);
      if (group !== undefined) yield group;
    }
  }

  #join(record: ServiceRecord, { key, asked }: { readonly key: string; readonly asked: QuotaDependency }): void {
    const group = this.#groups.get(key) ?? { ...asked, members: new Set() };
    if (group.members.size === 0) {
      this.#groups.set(key, group);
      this.#byTenant.add(asked.tenant, key);
    }
    group.members.add(record);
  }

  #leave(record: ServiceRecord, key: string | undefined): void {
    const group = key === undefined ? undefined : this.#groups.get(key);
    if (key === undefined || group === undefined) return;
    group.members.delete(record);
    if (group.members.size > 0) return;
    this.#groups.delete(key);
    this.#byTenant.delete(group.tenant, key);
  }
}

function groupKeyOf({ tenant, results }: QuotaDependency): string {
  return [tenant, ...results.map(({ question, answer }) => `${question.kind} ${question.ports} ${answer}`)].join('\n');
}

/** What was given up or taken: whoever waits for some of it has to be asked again. */
export class ChangedResources {
  /** By `portKey`, `shareKey` and `claimKey`. */
  readonly #portKeys = new Set<string>();
  readonly #tenants = new Set<string>();

  get portKeys(): ReadonlySet<string> {
    return this.#portKeys;
  }

  get tenants(): ReadonlySet<string> {
    return this.#tenants;
  }

  /** `hosts`: those on shared ones. */
  addListeners(listeners: readonly ListenerEntry[], hosts: readonly string[]): void {
    const shared = new Map<string, ListenerEntry>();
    for (const listener of listeners) {
      if (listener.shared === true) shared.set(portShareKey(listener), listener);
      else this.#portKeys.add(portKey(listener));
    }
    for (const [key, listener] of shared) {
      this.#portKeys.add(key);
      for (const host of hosts) this.#portKeys.add(portHostKey(listener, host));
    }
  }

  addTenant(tenant: string | null | undefined): void {
    if (tenant !== undefined && tenant !== null) this.#tenants.add(tenant);
  }

  addAll(other: ChangedResources): void {
    for (const port of other.#portKeys) this.#portKeys.add(port);
    for (const tenant of other.#tenants) this.#tenants.add(tenant);
  }
}
