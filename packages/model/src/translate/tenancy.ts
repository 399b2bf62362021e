import { isJsonEqual } from '../json-equal.ts';
import type { ListDiff } from '../list-diff.ts';
import type { TenantGrants, TenantLimits, TenantPolicySpec } from '../policy.ts';
import { comparePolicies, labelValue, matchesSelector } from '../policy-selection.ts';
import type { NamespaceObject, ServiceObject, Snapshot } from '../snapshot.ts';

// Who is whose tenant. A namespace belongs to the highest policy that selects it, a tenant to exactly one policy.
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
  | {
      readonly kind: 'disputed';
      readonly message: string;
      /** Of the policy that selects the namespace, whose tenant it may not be: what is served goes on, with all of its endpoints. */
      readonly allowedEndpointCIDRs: readonly string[];
    };

export interface Tenancy {
  /** By name. */
  readonly tenants: ReadonlyMap<string, Tenant>;
  readonly membershipOf: (namespace: string) => Membership;
}

interface PolicyAssignment {
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

/** Which policy each namespace falls under, kept while the policies are the same: a namespace that changes costs one search. */
export class PolicyAssignments {
  #policies: Snapshot['policies'] = [];
  #settings: Snapshot['settings'] | undefined;
  #rankedPolicies: readonly RankedPolicy[] = [];
  #byNamespace = new WeakMap<NamespaceObject, PolicyAssignment>();

  of(snapshot: Snapshot): readonly PolicyAssignment[] {
    if (snapshot.policies !== this.#policies || snapshot.settings !== this.#settings) {
      this.#policies = snapshot.policies;
      this.#settings = snapshot.settings;
      this.#rankedPolicies = rankedPolicies(snapshot);
      this.#byNamespace = new WeakMap();
    }
    const named = new Set(snapshot.namespaces.map(({ name }) => name));
    // A Service may stand in a namespace whose object was not seen yet, or that no file holds.
    const bare = new Set(snapshot.services.map(({ namespace }) => namespace).filter((name) => !named.has(name)));
    return [
      ...[...bare].map((name) => policyAssignmentFor({ name, labels: {} }, this.#rankedPolicies)),
      ...snapshot.namespaces.map((namespace) => this.#claimOf(namespace)),
    ];
  }

  #claimOf(namespace: NamespaceObject): PolicyAssignment {
    const claim = this.#byNamespace.get(namespace) ?? policyAssignmentFor(namespace, this.#rankedPolicies);
    this.#byNamespace.set(namespace, claim);
    return claim;
  }
}

export function tenancyFor(snapshot: Snapshot, known: PolicyAssignments = new PolicyAssignments()): Tenancy {
  const claims = known.of(snapshot);
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
  const unknown: Membership = { kind: 'disputed', message: 'the namespace does not exist', allowedEndpointCIDRs: [] };
  return { tenants, membershipOf: (namespace) => memberships.get(namespace) ?? unknown };
}

function rankedPolicies(snapshot: Snapshot): readonly RankedPolicy[] {
  const sorted = [...snapshot.policies].sort(comparePolicies);
  return [
    ...sorted.map(({ name, spec }, rank) => ({ name, spec, rank })),
    { name: null, spec: snapshot.settings.defaultPolicy, rank: sorted.length },
  ];
}

function policyAssignmentFor(
  namespace: Pick<NamespaceObject, 'name' | 'labels'>,
  policies: readonly RankedPolicy[],
): PolicyAssignment {
  const labels = { ...namespace.labels, 'kubernetes.io/metadata.name': namespace.name };
  const policy = policies.find(({ spec }) => matchesSelector(spec.namespaceSelector, labels)) ?? policies.at(-1);
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
      return labelValue(namespace.labels, spec.tenantFrom.label) || undefined;
    case 'name':
      return spec.tenantFrom.name;
    case 'disputed':
      return undefined;
  }
}

function membershipFor(
  claim: PolicyAssignment,
  owners: ReadonlyMap<string, RankedPolicy>,
  tenants: ReadonlyMap<string, Tenant>,
): Membership {
  const { tenant: name, policy } = claim;
  const tenant = name === undefined ? undefined : tenants.get(name);
  const { allowedEndpointCIDRs } = policy.spec.grants;
  if (tenant === undefined) return { kind: 'disputed', allowedEndpointCIDRs, message: noTenantText(claim) };
  if (owners.get(tenant.name) !== policy) {
    return {
      kind: 'disputed',
      allowedEndpointCIDRs,
      message: `tenant "${tenant.name}" of namespace "${claim.namespace}" already belongs to another TenantPolicy of higher priority; ask the operator to give one of the two another tenant name`,
    };
  }
  return { kind: 'tenant', tenant };
}

function noTenantText({ namespace, policy }: PolicyAssignment): string {
  const { tenantFrom } = policy.spec;
  if (tenantFrom.kind === 'disputed') return tenantFrom.message;
  const label = tenantFrom.kind === 'label' ? tenantFrom.label : '';
  return `namespace "${namespace}" has no label "${label}", from which ${policyText(policy.name)} takes the tenant; label the namespace, or ask the operator to`;
}

/** How messages call a policy: tenants look for this name. */
export function policyText(policy: string | null): string {
  return policy === null ? "the fleet's default policy" : `TenantPolicy "${policy}"`;
}

/** Who is whose tenant, made anew only when namespaces or policies change; tenants stay the same objects until they do. */
export class TenancyTracker {
  #tenancy: Tenancy = {
    tenants: new Map(),
    membershipOf: () => ({ kind: 'disputed', message: '', allowedEndpointCIDRs: [] }),
  };
  readonly #policyAssignments = new PolicyAssignments();
  #previous: Snapshot | undefined;
  /** How many Services each namespace has: one that only Services mention exists as well. */
  readonly #serviceCounts = new Map<string, number>();
  /** Names of those that have an object. */
  #namespaces: ReadonlySet<string> = new Set();

  get tenancy(): Tenancy {
    return this.#tenancy;
  }

  /** Whether there is an object of this name. */
  hasNamespace(name: string): boolean {
    return this.#namespaces.has(name);
  }

  /** Whether anything is another than before. */
  update(snapshot: Snapshot, services: ListDiff<ServiceObject>): boolean {
    const mentioned = this.#countServices(services);
    const before = this.#previous;
    this.#previous = snapshot;
    if (before?.namespaces !== snapshot.namespaces)
      this.#namespaces = new Set(snapshot.namespaces.map(({ name }) => name));
    if (
      !mentioned &&
      before?.namespaces === snapshot.namespaces &&
      before.policies === snapshot.policies &&
      before.settings === snapshot.settings
    ) {
      return false;
    }
    this.#tenancy = reuseUnchangedTenants(tenancyFor(snapshot, this.#policyAssignments), this.#tenancy.tenants);
    return true;
  }

  #countServices({ removed, added }: ListDiff<ServiceObject>): boolean {
    let isOther = false;
    const add = (namespace: string, change: 1 | -1): void => {
      const count = (this.#serviceCounts.get(namespace) ?? 0) + change;
      if (count === 0) this.#serviceCounts.delete(namespace);
      else this.#serviceCounts.set(namespace, count);
      if (count === 0 || (count === 1 && change === 1)) isOther = true;
    };
    for (const { namespace } of added) add(namespace, 1);
    for (const { namespace } of removed) add(namespace, -1);
    return isOther;
  }
}

export function isSameMembership(a: Membership | undefined, b: Membership): boolean {
  if (a?.kind === 'tenant' && b.kind === 'tenant') return a.tenant === b.tenant;
  return a?.kind === 'disputed' && b.kind === 'disputed' && isJsonEqual(a, b);
}

function reuseUnchangedTenants(tenancy: Tenancy, before: ReadonlyMap<string, Tenant>): Tenancy {
  const tenants = new Map<string, Tenant>();
  for (const [name, tenant] of tenancy.tenants) {
    const old = before.get(name);
    tenants.set(name, old !== undefined && isJsonEqual(old, tenant) ? old : tenant);
  }
  return {
    tenants,
    membershipOf(namespace) {
      const membership = tenancy.membershipOf(namespace);
      if (membership.kind !== 'tenant') return membership;
      return { kind: 'tenant', tenant: tenants.get(membership.tenant.name) ?? membership.tenant };
    },
  };
}
