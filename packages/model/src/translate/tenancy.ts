// Derives the tenants from namespaces and TenantPolicies. A namespace belongs to the TenantPolicy of highest priority that selects it;
// without such a policy, the fleet's default policy applies. A tenant belongs to exactly one policy.

import type { ListDiff } from '../compare.ts';
import { isJsonEqual } from '../compare.ts';
import type { TenantGrants, TenantLimits, TenantPolicySpec } from '../policy.ts';
import { comparePolicies, labelValue, matchesSelector } from '../policy-selection.ts';
import type { Rule } from '../rules/rule.ts';
import type { NamespaceObject, ServiceObject, Snapshot } from '../snapshot.ts';

export interface Tenant {
  readonly name: string;
  /** The name of the TenantPolicy; null for the fleet's default policy. */
  readonly policy: string | null;
  readonly namespaces: readonly string[];
  readonly limits: TenantLimits;
  readonly grants: TenantGrants;
  readonly rules?: readonly Rule[];
}

export type Membership =
  | { readonly kind: 'tenant'; readonly tenant: Tenant }
  | {
      readonly kind: 'disputed';
      readonly message: string;
      /**
       * The allowedEndpointCIDRs of the policy that selects the namespace, so that a served Service keeps its endpoints during the
       * dispute.
       */
      readonly allowedEndpointCIDRs: readonly string[];
    };

export interface Tenancy {
  /** The tenants by name. */
  readonly tenants: ReadonlyMap<string, Tenant>;
  readonly membershipOf: (namespace: string) => Membership;
}

/** The policy that selects a namespace, and the tenant name that the policy yields for the namespace. */
interface PolicyAssignment {
  readonly namespace: string;
  readonly policy: RankedPolicy;
  /** Undefined if the policy yields no tenant name, for example because the namespace lacks the label. */
  readonly tenant: string | undefined;
}

interface RankedPolicy {
  readonly name: string | null;
  readonly spec: TenantPolicySpec;
  /** The position of the policy in order of priority. 0 has the highest priority; the default policy comes last. */
  readonly rank: number;
}

/**
 * Caches the policy of each namespace until the policies or settings change. If a namespace changes, only the policy of this namespace is
 * looked up again.
 */
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
    const observed = new Set(snapshot.namespaces.map(({ name }) => name));
    // The namespace of a Service may have no Namespace object: the object is not observed yet, or a directory of manifests does not contain
    // it.
    const unobserved = new Set(
      snapshot.services.map(({ namespace }) => namespace).filter((name) => !observed.has(name)),
    );
    return [
      ...[...unobserved].map((name) => policyAssignmentFor({ name, labels: {} }, this.#rankedPolicies)),
      ...snapshot.namespaces.map((namespace) => this.#assignmentOf(namespace)),
    ];
  }

  #assignmentOf(namespace: NamespaceObject): PolicyAssignment {
    const assignment = this.#byNamespace.get(namespace) ?? policyAssignmentFor(namespace, this.#rankedPolicies);
    this.#byNamespace.set(namespace, assignment);
    return assignment;
  }
}

/** Returns the tenants of a snapshot. If two policies yield the same tenant name, the policy of higher priority owns the tenant. */
export function tenancyFor(snapshot: Snapshot, cache: PolicyAssignments = new PolicyAssignments()): Tenancy {
  const assignments = cache.of(snapshot);
  const owners = new Map<string, RankedPolicy>();
  for (const { tenant, policy } of assignments) {
    if (tenant === undefined) continue;
    const owner = owners.get(tenant);
    if (owner === undefined || policy.rank < owner.rank) owners.set(tenant, policy);
  }
  const assignmentsByTenant = Map.groupBy(assignments, ({ tenant }) => tenant);
  const tenants = new Map<string, Tenant>();
  for (const [name, owner] of owners) {
    const own = (assignmentsByTenant.get(name) ?? []).filter(({ policy }) => policy === owner);
    const namespaces = own.map(({ namespace }) => namespace).sort();
    const { limits, grants, rules } = owner.spec;
    tenants.set(name, { name, policy: owner.name, namespaces, limits, grants, ...(rules && { rules }) });
  }
  const memberships = new Map(
    assignments.map((assignment) => [assignment.namespace, membershipFor(assignment, owners, tenants)]),
  );
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
  assignment: PolicyAssignment,
  owners: ReadonlyMap<string, RankedPolicy>,
  tenants: ReadonlyMap<string, Tenant>,
): Membership {
  const { tenant: name, policy } = assignment;
  const tenant = name === undefined ? undefined : tenants.get(name);
  const { allowedEndpointCIDRs } = policy.spec.grants;
  if (tenant === undefined) return { kind: 'disputed', allowedEndpointCIDRs, message: noTenantText(assignment) };
  if (owners.get(tenant.name) !== policy) {
    return {
      kind: 'disputed',
      allowedEndpointCIDRs,
      message: `tenant "${tenant.name}" of namespace "${assignment.namespace}" already belongs to a TenantPolicy of higher priority; ask the operator to use another tenant name in one of the two policies`,
    };
  }
  return { kind: 'tenant', tenant };
}

function noTenantText({ namespace, policy }: PolicyAssignment): string {
  const { tenantFrom } = policy.spec;
  if (tenantFrom.kind === 'disputed') return tenantFrom.message;
  const label = tenantFrom.kind === 'label' ? tenantFrom.label : '';
  return `namespace "${namespace}" has no label "${label}", from which ${policyText(policy.name)} takes the tenant; add the label to the namespace, or ask the operator to add it`;
}

/** Returns the text that names a policy in messages. Null is the default policy. */
export function policyText(policy: string | null): string {
  return policy === null ? "the fleet's default policy" : `TenantPolicy "${policy}"`;
}

/**
 * Computes the tenancy again only if policies, settings, Namespace objects or the namespaces with Services change. An unchanged tenant
 * stays the same object.
 */
export class TenancyTracker {
  #tenancy: Tenancy = {
    tenants: new Map(),
    membershipOf: () => ({ kind: 'disputed', message: '', allowedEndpointCIDRs: [] }),
  };
  readonly #policyAssignments = new PolicyAssignments();
  #previous: Snapshot | undefined;
  /** The number of Services in each namespace. A namespace with Services counts as existing, even without a Namespace object. */
  readonly #serviceCounts = new Map<string, number>();
  /** Names of the Namespace objects. */
  #namespaces: ReadonlySet<string> = new Set();

  get tenancy(): Tenancy {
    return this.#tenancy;
  }

  /** Reports whether the snapshot has a Namespace object of this name. */
  hasNamespace(name: string): boolean {
    return this.#namespaces.has(name);
  }

  /** Applies a new snapshot. Returns whether the tenancy may have changed. */
  update(snapshot: Snapshot, services: ListDiff<ServiceObject>): boolean {
    const haveServiceNamespacesChanged = this.#countServices(services);
    const before = this.#previous;
    this.#previous = snapshot;
    if (before?.namespaces !== snapshot.namespaces)
      this.#namespaces = new Set(snapshot.namespaces.map(({ name }) => name));
    if (
      !haveServiceNamespacesChanged &&
      before?.namespaces === snapshot.namespaces &&
      before.policies === snapshot.policies &&
      before.settings === snapshot.settings
    ) {
      return false;
    }
    this.#tenancy = reuseUnchangedTenants(tenancyFor(snapshot, this.#policyAssignments), this.#tenancy.tenants);
    return true;
  }

  /** Applies changes of Services to `#serviceCounts`. Returns whether a namespace got its first Service or lost its last Service. */
  #countServices({ removed, added }: ListDiff<ServiceObject>): boolean {
    let hasChanged = false;
    const add = (namespace: string, change: 1 | -1): void => {
      const count = (this.#serviceCounts.get(namespace) ?? 0) + change;
      if (count === 0) this.#serviceCounts.delete(namespace);
      else this.#serviceCounts.set(namespace, count);
      if (count === 0 || (count === 1 && change === 1)) hasChanged = true;
    };
    for (const { namespace } of added) add(namespace, 1);
    for (const { namespace } of removed) add(namespace, -1);
    return hasChanged;
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
