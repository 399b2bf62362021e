// What of the fleet somebody may see. Pure, and the only place that decides it.
import {
  type Cutoff,
  entriesOf,
  isTargeted,
  type RoutingTable,
  type ServiceView,
  type SuspensionTarget,
  type TenantView,
} from '@weir/model';

export type Sight =
  | { readonly kind: 'all' }
  /** Their Services and figures, and the totals of the tenants that they belong to. */
  | { readonly kind: 'namespaces'; readonly namespaces: ReadonlySet<string> };

export function seesNamespace(sight: Sight, namespace: string): boolean {
  return sight.kind === 'all' || sight.namespaces.has(namespace);
}

/**
 * The tenants whose totals are seen; undefined: all. A namespace is of the tenant that the table says, not of one that its Services once
 * were counted to or hold on to in a dispute: that would show the figures of whoever has the name now.
 */
export function tenantsSeen(sight: Sight, table: RoutingTable): ReadonlySet<string> | undefined {
  if (sight.kind === 'all') return undefined;
  const seen = entriesOf(table, 'tenant').filter((entry) =>
    entry.namespaces.some((each) => sight.namespaces.has(each)),
  );
  return new Set(seen.map((entry) => entry.name));
}

export function tenantNamesSeen(sight: Sight, table: RoutingTable): string[] {
  const seen = tenantsSeen(sight, table);
  const names = entriesOf(table, 'tenant').map((entry) => entry.name);
  return names.filter((name) => seen?.has(name) ?? true).sort();
}

/** Equal for those who see the same. */
export function sightKey(sight: Sight): string {
  return sight.kind === 'all' ? '*' : [...sight.namespaces].sort().join(' ');
}

export function isSameSight(a: Sight, b: Sight): boolean {
  return sightKey(a) === sightKey(b);
}

/** Whether the totals of a tenant are seen: those of one that the table does not know only by whoever sees all. */
export function seesTenantTotal(sight: Sight, table: RoutingTable, tenant: string): boolean {
  return tenantsSeen(sight, table)?.has(tenant) ?? true;
}

/** Every namespace that the table knows of. */
export function namespacesOf(table: RoutingTable): Set<string> {
  return new Set([
    ...entriesOf(table, 'tenant').flatMap((entry) => entry.namespaces),
    ...entriesOf(table, 'service').map((entry) => entry.namespace),
  ]);
}

/** A tenant's totals stay; which other namespaces it has is told to those who see them. */
export function tenantSeen<T extends Pick<TenantView, 'namespaces'>>(sight: Sight, view: T): T {
  return { ...view, namespaces: view.namespaces.filter((each) => seesNamespace(sight, each)) };
}

export interface SeenThings {
  readonly table: RoutingTable;
  readonly services: readonly ServiceView[];
}

/** A Suspension is shown to those whom it stops. */
export function seesCutoff(sight: Sight, { target }: Pick<Cutoff, 'target'>, { table, services }: SeenThings): boolean {
  if (sight.kind === 'all') return true;
  if (seesTarget(sight, target, table)) return true;
  return services.some((view) => sight.namespaces.has(view.namespace) && isTargeted(target, view));
}

/** Whether it may be told if the target is there. */
export function seesTarget(sight: Sight, target: SuspensionTarget, table: RoutingTable): boolean {
  return target.kind === 'tenant'
    ? seesTenantTotal(sight, table, target.tenant)
    : seesNamespace(sight, target.namespace);
}

/** A problem of an object in a namespace is of those who see the namespace; all others are the operators'. */
export function seesProblem(sight: Sight, { subject }: { readonly subject: string }): boolean {
  if (sight.kind === 'all') return true;
  const namespace = /^(?:Service|EndpointSlice|Secret) ([^/ ]+)\/[^/ ]+$/.exec(subject)?.[1];
  return namespace !== undefined && sight.namespaces.has(namespace);
}
