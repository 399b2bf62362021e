// Checks TenantUsages that are read from the API server. A tenant who may write TenantUsages could otherwise bill other tenants: a seed
// adds the usage in these objects to the ledger.
import { namespaceOfOtherServices } from '@weir/model';
import type { TenantUsage } from './tenant-usage.ts';

export interface UsageOwnership {
  /** Returns the tenant to which a namespace belongs now, or undefined if it belongs to none. */
  readonly tenantOf: (namespace: string) => string | undefined;
  /** Returns the namespace of an existing Service, or undefined if no Service has this uid. */
  readonly namespaceOf: (uid: string) => string | undefined;
}

export interface TrustedUsage {
  readonly usages: readonly TenantUsage[];
  /** The number of refused rows and bases, by namespace of the TenantUsage. */
  readonly refusedByNamespace: ReadonlyMap<string, number>;
}

/**
 * Returns the usages without rows and bases of a tenant to which the namespace does not belong, or of a Service of another namespace. Usage
 * of a former tenant of the namespace is refused, too, because it looks like forged usage.
 */
export function trustedUsage(usages: readonly TenantUsage[], { tenantOf, namespaceOf }: UsageOwnership): TrustedUsage {
  const refusedByNamespace = new Map<string, number>();
  const trusted = usages.map(({ namespace, status }): TenantUsage => {
    const owner = tenantOf(namespace);
    const isTrusted = ({ uid, tenant }: { readonly uid: string; readonly tenant: string }): boolean => {
      const serviceNamespace = namespaceOfOtherServices(uid) ?? namespaceOf(uid) ?? namespace;
      const isOwn = tenant === owner && serviceNamespace === namespace;
      if (!isOwn) refusedByNamespace.set(namespace, (refusedByNamespace.get(namespace) ?? 0) + 1);
      return isOwn;
    };
    const months = status.months.map(({ month, services }) => ({ month, services: services.filter(isTrusted) }));
    return { namespace, status: { ...status, months, lives: status.lives.filter(isTrusted) } };
  });
  return { usages: trusted, refusedByNamespace };
}
