import type { Asked } from './asked-quota.ts';
import type { Decision } from './decision.ts';
import { Groups } from './groups.ts';
import type { ServiceRecord } from './service-record.ts';

/** Services of a tenant that asked the same of its limits, and were told the same. */
export interface WaitingGroup extends Asked {
  readonly members: Set<ServiceRecord>;
}

/** Services that did not get all that they ask for, found by what might change that. */
export class Waiting {
  /** With what they are found by. */
  readonly #all = new Map<ServiceRecord, { readonly wants: readonly string[]; readonly group: string | undefined }>();
  /** By `portKey`, `shareKey` and `claimKey`. */
  readonly #byPort = new Groups<ServiceRecord>();
  readonly #groups = new Map<string, WaitingGroup>();
  /** By tenant, the keys of its groups. */
  readonly #byTenant = new Groups<string>();

  get size(): number {
    return this.#all.size;
  }

  /** In place of what it waited for before, which is mostly the same. */
  put(record: ServiceRecord, { wants, asked }: Pick<Decision, 'wants' | 'asked'>): void {
    const before = this.#all.get(record);
    const group = asked && keyOf(asked);
    this.#all.set(record, { wants, group });
    if (before === undefined || before.wants.join() !== wants.join()) {
      for (const key of before?.wants ?? []) this.#byPort.delete(key, record);
      for (const key of wants) this.#byPort.add(key, record);
    }
    if (before?.group === group) return;
    this.#leave(record, before?.group);
    if (asked !== undefined && group !== undefined) this.#join(record, { key: group, asked });
  }

  delete(record: ServiceRecord): void {
    const before = this.#all.get(record);
    if (before === undefined) return;
    this.#all.delete(record);
    for (const key of before.wants) this.#byPort.delete(key, record);
    this.#leave(record, before.group);
  }

  /** Who could use one of these. */
  forPorts(keys: Iterable<string>): Set<ServiceRecord> {
    const found = new Set<ServiceRecord>();
    for (const key of keys) for (const record of this.#byPort.of(key)) found.add(record);
    return found;
  }

  *groupsOf(tenant: string): Iterable<WaitingGroup> {
    for (const key of this.#byTenant.of(tenant)) {
      const group = this.#groups.get(key);
      if (group !== undefined) yield group;
    }
  }

  #join(record: ServiceRecord, { key, asked }: { readonly key: string; readonly asked: Asked }): void {
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

function keyOf({ tenant, answers }: Asked): string {
  return [tenant, ...answers.map(({ question, answer }) => `${question.kind} ${question.ports} ${answer}`)].join('\n');
}
