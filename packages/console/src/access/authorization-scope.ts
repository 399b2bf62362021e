// What of the fleet somebody may see. Pure, and the only place that decides it.
import {
  entriesOf,
  isTargetOf,
  type RoutingTable,
  type ServiceView,
  type Suspension,
  type SuspensionTarget,
  type TenantView,
} from '@weir/model';

export type AuthorizationScope =
  | { readonly kind: 'all' }
  /** Their Services and figures, and the totals of the tenants that they belong to. */
  | { readonly kind: 'namespaces'; readonly namespaces: ReadonlySet<string> };

export function isNamespaceVisible(sight: AuthorizationScope, namespace: string): boolean {
  return sight.kind === 'all' || sight.namespaces.has(namespace);
}

/**
 * The tenants whose totals are seen; undefined: all. A namespace is of the tenant that the table says, not of one that its Services once
 * were counted to or hold on to in a dispute: that would show the figures of whoever has the name now.
 */
export function visibleTenants(sight: AuthorizationScope, table: RoutingTable): ReadonlySet<string> | undefined {
  if (sight.kind === 'all') return undefined;
  const seen = entriesOf(table, 'tenant').filter((entry) =>
    entry.namespaces.some((each) => sight.namespaces.has(each)),
  );
  return new Set(seen.map((entry) => entry.name));
}

export function visibleTenantNames(sight: AuthorizationScope, table: RoutingTable): string[] {
  const seen = visibleTenants(sight, table);
  const names = entriesOf(table, 'tenant').map((entry) => entry.name);
  return names.filter((name) => seen?.has(name) ?? true).sort();
}

/** Equal for those who see the same. */
export function scopeKey(sight: AuthorizationScope): string {
  return sight.kind === 'all' ? '*' : [...sight.namespaces].sort().join(' ');
}

export function isSameScope(a: AuthorizationScope, b: AuthorizationScope): boolean {
  return scopeKey(a) === scopeKey(b);
}

/** Whether the totals of a tenant are seen: those of one that the table does not know only by whoever sees all. */
export function isTenantVisible(sight: AuthorizationScope, table: RoutingTable, tenant: string): boolean {
  return visibleTenants(sight, table)?.has(tenant) ?? true;
}

/** Every namespace that the table knows of. */
export function namespacesIn(table: RoutingTable): Set<string> {
  return new Set([
    ...entriesOf(table, 'tenant').flatMap((entry) => entry.namespaces),
    ...entriesOf(table, 'service').map((entry) => entry.namespace),
  ]);
}

/** A tenant's totals stay; which other namespaces it has is told to those who see them. */
export function withVisibleNamespaces<T extends Pick<TenantView, 'namespaces'>>(sight: AuthorizationScope, view: T): T {
  return { ...view, namespaces: view.namespaces.filter((each) => isNamespaceVisible(sight, each)) };
}

export interface TableAndServices {
  readonly table: RoutingTable;
  readonly services: readonly ServiceView[];
}

/** A Suspension is shown to those whom it stops. */
export function isCutoffVisible(
  sight: AuthorizationScope,
  { target }: Pick<Suspension, 'target'>,
  { table, services }: TableAndServices,
): boolean {
  if (sight.kind === 'all') return true;
  if (isTargetVisible(sight, target, table)) return true;
  return services.some((view) => sight.namespaces.has(view.namespace) && isTargetOf(target, view));
}

/** Whether it may be told if the target is there. */
export function isTargetVisible(sight: AuthorizationScope, target: SuspensionTarget, table: RoutingTable): boolean {
  return target.kind === 'tenant'
    ? isTenantVisible(sight, table, target.tenant)
    : isNamespaceVisible(sight, target.namespace);
}

/** A problem of an object in a namespace is of those who see the namespace; all others are the operators'. */
export function isProblemVisible(sight: AuthorizationScope, { subject }: { readonly subject: string }): boolean {
  if (sight.kind === 'all') return true;
  const namespace = /^(?:Service|EndpointSlice|Secret) ([^/ ]+)\/[^/ ]+$/.exec(subject)?.[1];
  return namespace !== undefined && sight.namespaces.has(namespace);
}
