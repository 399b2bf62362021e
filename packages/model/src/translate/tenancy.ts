// Who is whose tenant. A namespace belongs to the highest policy that selects it, a tenant to exactly one policy.
import type { TenantGrants, TenantLimits, TenantPolicySpec } from '../policy.ts';
import { byPrecedence } from '../precedence.ts';
import type { NamespaceObject, Snapshot } from '../snapshot.ts';
import { labelOf, selects } from './label-selector.ts';

export interface Tenant {
  readonly name: string;
  /** Null: the fleet's default policy. */
  readonly policy: string | null;
  readonly namespaces: readonly string[];
  readonly limits: TenantLimits;
  readonly grants: TenantGrants;
}

export type Membership =
  | { readonly kind: 'tenant'; readonly tenant: Tenant }
  | { readonly kind: 'disputed'; readonly message: string };

export interface Tenancy {
  /** By name. */
  readonly tenants: ReadonlyMap<string, Tenant>;
  readonly membershipOf: (namespace: string) => Membership;
}

interface Claim {
  readonly namespace: string;
  readonly policy: RankedPolicy;
  readonly tenant: string | undefined;
}

interface RankedPolicy {
  readonly name: string | null;
  readonly spec: TenantPolicySpec;
  /** 0 is the highest; the default policy is the lowest. */
  readonly rank: number;
}

export function tenancyFor(snapshot: Snapshot): Tenancy {
  const policies = rankedPolicies(snapshot);
  const claims = namespacesOf(snapshot).map((namespace) => claimFor(namespace, policies));
  const owners = new Map<string, RankedPolicy>();
  for (const { tenant, policy } of claims) {
    if (tenant === undefined) continue;
    const owner = owners.get(tenant);
    if (owner === undefined || policy.rank < owner.rank) owners.set(tenant, policy);
  }
  const claimsOf = Map.groupBy(claims, ({ tenant }) => tenant);
  const tenants = new Map<string, Tenant>();
  for (const [name, owner] of owners) {
    const own = (claimsOf.get(name) ?? []).filter((claim) => claim.policy === owner);
    const namespaces = own.map((claim) => claim.namespace).sort();
    tenants.set(name, { name, policy: owner.name, namespaces, limits: owner.spec.limits, grants: owner.spec.grants });
  }
  const memberships = new Map(claims.map((claim) => [claim.namespace, membershipFor(claim, owners, tenants)]));
  const unknown: Membership = { kind: 'disputed', message: 'the namespace does not exist' };
  return { tenants, membershipOf: (namespace) => memberships.get(namespace) ?? unknown };
}

function rankedPolicies(snapshot: Snapshot): readonly RankedPolicy[] {
  const sorted = [...snapshot.policies].sort(byPrecedence);
  return [
    ...sorted.map(({ name, spec }, rank) => ({ name, spec, rank })),
    { name: null, spec: snapshot.settings.defaultPolicy, rank: sorted.length },
  ];
}

/** A Service may stand in a namespace whose object was not seen yet, or that no file holds. */
function namespacesOf(snapshot: Snapshot): readonly Pick<NamespaceObject, 'name' | 'labels'>[] {
  const known = new Map<string, Pick<NamespaceObject, 'name' | 'labels'>>();
  for (const service of snapshot.services) known.set(service.namespace, { name: service.namespace, labels: {} });
  for (const namespace of snapshot.namespaces) known.set(namespace.name, namespace);
  return [...known.values()];
}

function claimFor(namespace: Pick<NamespaceObject, 'name' | 'labels'>, policies: readonly RankedPolicy[]): Claim {
  const labels = { ...namespace.labels, 'kubernetes.io/metadata.name': namespace.name };
  const policy = policies.find(({ spec }) => selects(spec.namespaceSelector, labels)) ?? policies.at(-1);
  if (policy === undefined) throw new Error('there is always the default policy');
  return { namespace: namespace.name, policy, tenant: tenantNameFor(policy.spec, namespace) };
}

function tenantNameFor(
  spec: TenantPolicySpec,
  namespace: Pick<NamespaceObject, 'name' | 'labels'>,
): string | undefined {
  switch (spec.tenantFrom.kind) {
    case 'namespace':
      return namespace.name;
    case 'label':
      return labelOf(namespace.labels, spec.tenantFrom.label) || undefined;
    case 'name':
      return spec.tenantFrom.name;
  }
}

function membershipFor(
  claim: Claim,
  owners: ReadonlyMap<string, RankedPolicy>,
  tenants: ReadonlyMap<string, Tenant>,
): Membership {
  const { tenant: name, policy } = claim;
  const tenant = name === undefined ? undefined : tenants.get(name);
  if (tenant === undefined) {
    const label = policy.spec.tenantFrom.kind === 'label' ? policy.spec.tenantFrom.label : '';
    return {
      kind: 'disputed',
      message: `namespace "${claim.namespace}" has no label "${label}", from which ${policyText(policy.name)} takes the tenant; label the namespace, or ask the operator to`,
    };
  }
  if (owners.get(tenant.name) !== policy) {
    return {
      kind: 'disputed',
      message: `tenant "${tenant.name}" of namespace "${claim.namespace}" already belongs to another TenantPolicy of higher priority; ask the operator to give one of the two another tenant name`,
    };
  }
  return { kind: 'tenant', tenant };
}

/** How messages call a policy: tenants look for this name. */
export function policyText(policy: string | null): string {
  return policy === null ? "the fleet's default policy" : `TenantPolicy "${policy}"`;
}
