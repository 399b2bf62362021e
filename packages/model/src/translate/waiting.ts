import type { QuotaDependency } from './asked-quota.ts';
import type { Decision } from './decision.ts';
import { MultiMap } from './groups.ts';
import type { ServiceRecord } from './service-record.ts';

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
