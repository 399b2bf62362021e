import { type TenantEntry, tenantId } from '../table/entry.ts';
import type { Quota } from './quota.ts';
import type { ServiceBook } from './service-book.ts';
import type { Replacement } from './table-draft.ts';
import type { Tenancy } from './tenancy.ts';

/** The entries of tenants: of all that a policy names, and of those of the default policy that have Services. */
export class TenantEntries {
  readonly #entries = new Map<string, TenantEntry>();

  /** Of these tenants, or when who is a tenant has changed of all. */
  renew(
    touched: ReadonlySet<string> | 'all',
    { tenancy, quota, services }: { readonly tenancy: Tenancy; readonly quota: Quota; readonly services: ServiceBook },
  ): Replacement[] {
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
      const used = quota.usedBy(name);
      const entry: TenantEntry = { kind: 'tenant', id: tenantId(name), name, policy, namespaces, limits, used };
      this.#entries.set(name, entry);
      return { before: before === undefined ? [] : [before], after: [entry] };
    });
  }
}
