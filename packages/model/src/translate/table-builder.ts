import { isJsonEqual } from '../json-equal.ts';
import { type Entry, type TenantEntry, tenantId } from '../table/entry.ts';
import { apply, type Change, EMPTY_TABLE, type RoutingTable } from '../table/table.ts';
import type { Quota } from './allocate/quota.ts';
import type { ServiceRegistry } from './service-registry.ts';
import type { Tenancy } from './tenancy.ts';

/** The entries of one source, before and now. */
export interface EntryReplacement {
  readonly before: readonly Entry[];
  readonly after: readonly Entry[];
}

/** A routing table that is changed in few places. Entries that say the same stay the same objects. */
export class TableBuilder {
  #table: RoutingTable = EMPTY_TABLE;

  /** The same object until something changes. */
  get table(): RoutingTable {
    return this.#table;
  }

  /** All together, since an id may go from one source to another. Throws when two have the same. */
  replace(replacements: readonly EntryReplacement[]): void {
    const gone = new Map<string, Entry>();
    for (const { before } of replacements) for (const entry of before) gone.set(entry.id, entry);
    const come = new Map<string, Entry>();
    for (const { after } of replacements) {
      for (const entry of after) {
        const isTwice = come.has(entry.id) || (!gone.has(entry.id) && this.#table.entries.has(entry.id));
        if (isTwice) throw new Error(`two entries of the table have the id ${entry.id}`);
        come.set(entry.id, entry);
      }
    }
    const changed = [...come.values()].filter((entry) => !isJsonEqual(gone.get(entry.id), entry));
    const left = [...gone.keys()].filter((id) => !come.has(id));
    if (changed.length === 0 && left.length === 0) return;
    this.#table = apply(this.#table, [
      ...left.map((id): Change => ({ kind: 'delete', id })),
      ...changed.map((entry): Change => ({ kind: 'put', entry })),
    ]);
  }
}

/** The entries of tenants: of all that a policy names, and of those of the default policy that have Services. */
export class TenantEntryTracker {
  readonly #entries = new Map<string, TenantEntry>();

  /** Of these tenants, or when who is a tenant has changed of all. */
  update(
    touched: ReadonlySet<string> | 'all',
    {
      tenancy,
      quota,
      services,
    }: { readonly tenancy: Tenancy; readonly quota: Quota; readonly services: ServiceRegistry },
  ): EntryReplacement[] {
    const names = touched === 'all' ? new Set([...this.#entries.keys(), ...tenancy.tenants.keys()]) : touched;
    return [...names].map((name) => {
      const before = this.#entries.get(name);
      const tenant = tenancy.tenants.get(name);
      const isShown = tenant !== undefined && (tenant.policy !== null || services.ofTenant(name).size > 0);
      if (!isShown) {
        this.#entries.delete(name);
        return { before: before === undefined ? [] : [before], after: [] };
      }
      const { policy, namespaces, limits } = tenant;
      const used = quota.usageOf(name);
      const entry: TenantEntry = { kind: 'tenant', id: tenantId(name), name, policy, namespaces, limits, used };
      this.#entries.set(name, entry);
      return { before: before === undefined ? [] : [before], after: [entry] };
    });
  }
}
