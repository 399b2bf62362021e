import { type TenantEntry, tenantId } from '../table/entry.ts';
import type { Quota } from './quota.ts';
import type { ServiceRegistry } from './service-book.ts';
import type { EntryReplacement } from './table-draft.ts';
import type { Tenancy } from './tenancy.ts';

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
