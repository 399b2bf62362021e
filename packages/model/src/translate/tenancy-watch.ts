import type { ServiceObject, Snapshot } from '../snapshot.ts';
import { isSame } from '../table/same.ts';
import type { ChangedIn } from './changed-in.ts';
import { Claims, type Membership, type Tenancy, type Tenant, tenancyFor } from './tenancy.ts';

/** Who is whose tenant, made anew only when namespaces or policies change; tenants stay the same objects until they do. */
export class TenancyWatch {
  #tenancy: Tenancy = {
    tenants: new Map(),
    membershipOf: () => ({ kind: 'disputed', message: '', allowedEndpointCIDRs: [] }),
  };
  readonly #claims = new Claims();
  #before: Snapshot | undefined;
  /** How many Services each namespace has: one that only Services mention exists as well. */
  readonly #services = new Map<string, number>();
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
  update(snapshot: Snapshot, services: ChangedIn<ServiceObject>): boolean {
    const mentioned = this.#count(services);
    const before = this.#before;
    this.#before = snapshot;
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
    this.#tenancy = keepingSame(tenancyFor(snapshot, this.#claims), this.#tenancy.tenants);
    return true;
  }

  #count({ gone, come }: ChangedIn<ServiceObject>): boolean {
    let isOther = false;
    const add = (namespace: string, change: 1 | -1): void => {
      const count = (this.#services.get(namespace) ?? 0) + change;
      if (count === 0) this.#services.delete(namespace);
      else this.#services.set(namespace, count);
      if (count === 0 || (count === 1 && change === 1)) isOther = true;
    };
    for (const { namespace } of come) add(namespace, 1);
    for (const { namespace } of gone) add(namespace, -1);
    return isOther;
  }
}

export function isSameMembership(a: Membership | undefined, b: Membership): boolean {
  if (a?.kind === 'tenant' && b.kind === 'tenant') return a.tenant === b.tenant;
  return a?.kind === 'disputed' && b.kind === 'disputed' && isSame(a, b);
}

function keepingSame(tenancy: Tenancy, before: ReadonlyMap<string, Tenant>): Tenancy {
  const tenants = new Map<string, Tenant>();
  for (const [name, tenant] of tenancy.tenants) {
    const old = before.get(name);
    tenants.set(name, old !== undefined && isSame(old, tenant) ? old : tenant);
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
