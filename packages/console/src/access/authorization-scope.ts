// Pure functions that decide which data of the fleet a user may see.
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
  /** Shows the Services and the usage of `namespaces`, and the totals of the tenants that own these namespaces. */
  | { readonly kind: 'namespaces'; readonly namespaces: ReadonlySet<string> };

export function isNamespaceVisible(scope: AuthorizationScope, namespace: string): boolean {
  return scope.kind === 'all' || scope.namespaces.has(namespace);
}

/**
 * Returns the names of the tenants whose totals are visible, or undefined if all totals are visible. A tenant is visible if its table entry
 * lists a visible namespace. The tenant name of a visible Service does not count: while two policies claim a tenant name, a Service keeps
 * its tenant name, although that name may have a new owner.
 */
export function visibleTenants(scope: AuthorizationScope, table: RoutingTable): ReadonlySet<string> | undefined {
  if (scope.kind === 'all') return undefined;
  const owners = entriesOf(table, 'tenant').filter((entry) =>
    entry.namespaces.some((namespace) => scope.namespaces.has(namespace)),
  );
  return new Set(owners.map((entry) => entry.name));
}

export function visibleTenantNames(scope: AuthorizationScope, table: RoutingTable): string[] {
  const visible = visibleTenants(scope, table);
  const names = entriesOf(table, 'tenant').map((entry) => entry.name);
  return names.filter((name) => visible?.has(name) ?? true).sort();
}

/** Returns a key that is equal for scopes that show the same data. */
export function scopeKey(scope: AuthorizationScope): string {
  return scope.kind === 'all' ? '*' : [...scope.namespaces].sort().join(' ');
}

export function isSameScope(a: AuthorizationScope, b: AuthorizationScope): boolean {
  return scopeKey(a) === scopeKey(b);
}

/** Whether a tenant's totals are visible. A tenant that is not in the table is visible only in the scope `all`. */
export function isTenantVisible(scope: AuthorizationScope, table: RoutingTable, tenant: string): boolean {
  return visibleTenants(scope, table)?.has(tenant) ?? true;
}

/** Returns every namespace of a tenant or a Service in the table. */
export function namespacesIn(table: RoutingTable): Set<string> {
  return new Set([
    ...entriesOf(table, 'tenant').flatMap((entry) => entry.namespaces),
    ...entriesOf(table, 'service').map((entry) => entry.namespace),
  ]);
}

/** Returns the view without the namespaces that the user may not see. The totals in the view stay the same. */
export function withVisibleNamespaces<T extends Pick<TenantView, 'namespaces'>>(scope: AuthorizationScope, view: T): T {
  return { ...view, namespaces: view.namespaces.filter((each) => isNamespaceVisible(scope, each)) };
}

export interface TableAndServices {
  readonly table: RoutingTable;
  readonly services: readonly ServiceView[];
}

/** Whether the target of a Suspension is visible, or a Service that the Suspension cuts off. */
export function isSuspensionVisible(
  scope: AuthorizationScope,
  { target }: Pick<Suspension, 'target'>,
  { table, services }: TableAndServices,
): boolean {
  if (scope.kind === 'all') return true;
  if (isTargetVisible(scope, target, table)) return true;
  return services.some((view) => scope.namespaces.has(view.namespace) && isTargetOf(target, view));
}

/** Whether the user may learn that the target exists. */
export function isTargetVisible(scope: AuthorizationScope, target: SuspensionTarget, table: RoutingTable): boolean {
  return target.kind === 'tenant'
    ? isTenantVisible(scope, table, target.tenant)
    : isNamespaceVisible(scope, target.namespace);
}

/** Whether the problem is visible. Problems of objects without a namespace are visible only in the scope `all`. */
export function isProblemVisible(scope: AuthorizationScope, { subject }: { readonly subject: string }): boolean {
  if (scope.kind === 'all') return true;
  const namespace = /^(?:Service|EndpointSlice|Secret) ([^/ ]+)\/[^/ ]+$/.exec(subject)?.[1];
  return namespace !== undefined && scope.namespaces.has(namespace);
}
