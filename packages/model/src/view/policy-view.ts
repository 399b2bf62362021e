// What became of the namespaces that a TenantPolicy selects: the answer to "does this policy do what I meant?".
import { comparePolicies, policiesSelecting } from '../policy-selection.ts';
import type { NamespaceObject, Snapshot, TenantPolicyObject } from '../snapshot.ts';
import { type Tenancy, type Tenant, tenancyFor } from '../translate/tenancy.ts';

export interface PolicyView {
  readonly uid: string;
  readonly name: string;
  /** 1 is asked first. */
  readonly precedence: number;
  readonly tenantCount: number;
  /** Namespaces that it covers. */
  readonly namespaceCount: number;
  readonly tenants: readonly { readonly name: string; readonly namespaces: readonly string[] }[];
  /** Namespaces whose Services are refused with TenantConflict: those in `conflicts` and in `unlabelled`. */
  readonly refusedCount: number;
  /** A tenant that it names, and the policy that has that name already. */
  readonly conflicts: readonly {
    readonly tenant: string;
    readonly policy: string;
    readonly namespaces: readonly string[];
  }[];
  /** Namespaces without the label from which it takes the tenant. */
  readonly unlabelled: readonly string[];
  readonly overriddenCount: number;
  /** Namespaces that it selects, and a policy that is asked before has. */
  readonly overridden: readonly { readonly policy: string; readonly namespaces: readonly string[] }[];
}

/** All are counted; a status has to stay small. */
export const MAX_LISTED_NAMESPACES = 500;

/** The policies of a snapshot in the order in which they are asked; every list is sorted by name. Of a snapshot only policies and namespaces matter. */
export function policyViewsFor(snapshot: Snapshot): PolicyView[] {
  // Without Services: a namespace of which only those are known yet would come and go.
  const tenancyOf = (parts: Partial<Snapshot>): Tenancy => tenancyFor({ ...snapshot, services: [], ...parts });
  const tenancy = tenancyOf({});
  const tenants = Map.groupBy(tenancy.tenants.values(), ({ policy }) => policy);
  return selectionsFor(snapshot).map((selection, index) => {
    const { policy, namespaces } = selection;
    const refused = namespaces.filter(({ name }) => tenancy.membershipOf(name).kind === 'disputed');
    const alone = tenancyOf({ policies: [policy], namespaces: refused });
    const own = tenants.get(policy.name) ?? [];
    return buildPolicyView({ ...selection, precedence: index + 1, tenancy, tenants: own, refused, alone });
  });
}

interface PolicySelection {
  readonly policy: TenantPolicyObject;
  /** Namespaces for which it counts. */
  readonly namespaces: readonly NamespaceObject[];
  /** Namespaces that it selects, too, and whose they are. */
  readonly overridden: readonly { readonly name: string; readonly policy: string }[];
}

function selectionsFor({ policies, namespaces }: Snapshot): readonly PolicySelection[] {
  const selections = policies.toSorted(comparePolicies).map((policy) => ({
    policy,
    namespaces: [] as NamespaceObject[],
    overridden: [] as PolicySelection['overridden'][number][],
  }));
  for (const namespace of namespaces) {
    const [winner, ...others] = policiesSelecting(namespace, selections);
    if (winner === undefined) continue;
    winner.namespaces.push(namespace);
    for (const { overridden } of others) overridden.push({ name: namespace.name, policy: winner.policy.name });
  }
  return selections;
}

interface PolicyViewInput extends PolicySelection {
  readonly precedence: number;
  readonly tenancy: Tenancy;
  readonly tenants: readonly Tenant[];
  readonly refused: readonly NamespaceObject[];
  /** Of the refused namespaces, were there no other policy: the names that this one wants to give. */
  readonly alone: Tenancy;
}

function buildPolicyView(findings: PolicyViewInput): PolicyView {
  const { policy, precedence, tenants, namespaces, refused, overridden } = findings;
  const others = [...Map.groupBy(overridden, (each) => each.policy)].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    uid: policy.uid,
    name: policy.name,
    precedence,
    tenantCount: tenants.length,
    namespaceCount: namespaces.length - refused.length,
    tenants: limitNamespaces(
      tenants.map((tenant) => ({ name: tenant.name, namespaces: tenant.namespaces })).sort(byName),
    ),
    refusedCount: refused.length,
    ...refusalsFor(findings),
    overriddenCount: overridden.length,
    overridden: limitNamespaces(others.map(([other, theirs]) => ({ policy: other, namespaces: names(theirs) }))),
  };
}

function refusalsFor({ tenancy, alone, refused }: PolicyViewInput): Pick<PolicyView, 'conflicts' | 'unlabelled'> {
  const named = Map.groupBy(refused, (namespace) => {
    const membership = alone.membershipOf(namespace.name);
    return membership.kind === 'tenant' ? membership.tenant.name : null;
  });
  const conflicts = [...named].flatMap(([tenant, namespaces]) => {
    const policy = tenant === null ? null : (tenancy.tenants.get(tenant)?.policy ?? null);
    return tenant === null || policy === null ? [] : [{ tenant, policy, namespaces: names(namespaces) }];
  });
  return {
    conflicts: limitNamespaces(conflicts.sort((a, b) => (a.tenant < b.tenant ? -1 : 1))),
    unlabelled: names(named.get(null) ?? []).slice(0, MAX_LISTED_NAMESPACES),
  };
}

/** As much from the front as may be listed. */
function limitNamespaces<T extends { readonly namespaces: readonly string[] }>(groups: readonly T[]): T[] {
  let left = MAX_LISTED_NAMESPACES;
  return groups.flatMap((group) => {
    const namespaces = group.namespaces.slice(0, left);
    left -= namespaces.length;
    return namespaces.length === 0 ? [] : [{ ...group, namespaces }];
  });
}

function names(objects: readonly { readonly name: string }[]): string[] {
  return objects.map(({ name }) => name).sort();
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}
