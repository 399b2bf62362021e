import type { ServiceObject, Snapshot } from '../snapshot.ts';
import { isJsonEqual } from '../table/same.ts';
import type { ListDiff } from './changed-in.ts';
import { type Membership, PolicyAssignments, type Tenancy, type Tenant, tenancyFor } from './tenancy.ts';

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
