// The effect of a TenantPolicy on the namespaces that it selects. Answers the question "does this policy do what I meant?".
import { comparePolicies, policiesSelecting } from '../policy-selection.ts';
import type { NamespaceObject, Snapshot, TenantPolicyObject } from '../snapshot.ts';
import { type Tenancy, type Tenant, tenancyFor } from '../translate/tenancy.ts';

export interface PolicyView {
  readonly uid: string;
  readonly name: string;
  /** 1 for the policy that takes precedence over all others. */
  readonly precedence: number;
  readonly tenantCount: number;
  /** The number of namespaces of the policy's tenants. */
  readonly namespaceCount: number;
  readonly tenants: readonly { readonly name: string; readonly namespaces: readonly string[] }[];
  /** The number of namespaces whose Services are refused with TenantConflict: the namespaces in `conflicts` and in `unlabelled`. */
  readonly refusedCount: number;
  /** Tenant names that this policy asks for although they belong to another policy. */
  readonly conflicts: readonly {
    readonly tenant: string;
    readonly policy: string;
    readonly namespaces: readonly string[];
  }[];
  /** Namespaces without the label from which the policy takes the tenant's name. */
  readonly unlabelled: readonly string[];
  readonly overriddenCount: number;
  /** Selected namespaces that belong to a policy of higher precedence. */
  readonly overridden: readonly { readonly policy: string; readonly namespaces: readonly string[] }[];
}

/**
 * The maximum number of namespaces in each list of a policy's status. Bounds the size of the status. Counts include namespaces that are not
 * listed.
 */
export const MAX_LISTED_NAMESPACES = 500;

/**
 * Returns the views of the policies of a snapshot, in order of precedence. Every list is sorted by name. The result depends only on
 * policies and namespaces.
 */
export function policyViewsFor(snapshot: Snapshot): PolicyView[] {
  // Ignores Services, because a namespace that is known only from its Services would appear and disappear.
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
  /** Selected namespaces for which no other policy takes precedence. */
  readonly namespaces: readonly NamespaceObject[];
  /** Other selected namespaces, each with the policy that takes precedence. */
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
  /**
   * The tenancy that the refused namespaces would have if `policy` were the only TenantPolicy. Contains the tenant names that the policy
   * asks for.
   */
  readonly alone: Tenancy;
}

function buildPolicyView(input: PolicyViewInput): PolicyView {
  const { policy, precedence, tenants, namespaces, refused, overridden } = input;
  const byWinner = [...Map.groupBy(overridden, (namespace) => namespace.policy)].sort(([a], [b]) => (a < b ? -1 : 1));
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
    ...refusalsFor(input),
    overriddenCount: overridden.length,
    overridden: limitNamespaces(byWinner.map(([winner, objects]) => ({ policy: winner, namespaces: names(objects) }))),
  };
}

function refusalsFor({ tenancy, alone, refused }: PolicyViewInput): Pick<PolicyView, 'conflicts' | 'unlabelled'> {
  const byTenant = Map.groupBy(refused, (namespace) => {
    const membership = alone.membershipOf(namespace.name);
    return membership.kind === 'tenant' ? membership.tenant.name : null;
  });
  const conflicts = [...byTenant].flatMap(([tenant, namespaces]) => {
    const policy = tenant === null ? null : (tenancy.tenants.get(tenant)?.policy ?? null);
    return tenant === null || policy === null ? [] : [{ tenant, policy, namespaces: names(namespaces) }];
  });
  return {
    conflicts: limitNamespaces(conflicts.sort((a, b) => (a.tenant < b.tenant ? -1 : 1))),
    unlabelled: names(byTenant.get(null) ?? []).slice(0, MAX_LISTED_NAMESPACES),
  };
}

/** Returns the first groups and namespaces, up to `MAX_LISTED_NAMESPACES` namespaces in total. */
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
