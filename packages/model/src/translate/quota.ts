// What each tenant uses of its counted limits, filled in the order in which Services are served.
import type { ServiceObject } from '../snapshot.ts';
import { policyText, type Tenant } from './tenancy.ts';
import { listed } from './text.ts';

export class Quota {
  readonly #byTenant = new Map<string, Used>();
  readonly #tenantOf = new Map<string, string>();

  /** Why the tenant cannot have one more Service with so many ports; undefined: it can. */
  refusalFor(tenant: Tenant, ports: number): string | undefined {
    const used = this.#of(tenant.name);
    if (used.services.size >= (tenant.limits.services ?? Infinity)) return servicesMessage(tenant, used);
    if (used.ports + ports > (tenant.limits.ports ?? Infinity)) return portsMessage(tenant, used, ports);
    return undefined;
  }

  /** How many more ports the tenant may have. */
  portsLeft(tenant: Tenant): number {
    return Math.max(0, (tenant.limits.ports ?? Infinity) - this.#of(tenant.name).ports);
  }

  /** Why one further port of a Service is one too many. */
  portRefusalFor(tenant: Tenant): string {
    return portsMessage(tenant, this.#of(tenant.name));
  }

  /** What is over the limit, if anything: limits are lowered without cutting what serves. */
  excessOf(tenant: Tenant): string | undefined {
    const used = this.#of(tenant.name);
    if (used.services.size > (tenant.limits.services ?? Infinity))
      return excessMessage(servicesInUse(tenant, used), tenant);
    if (used.ports > (tenant.limits.ports ?? Infinity)) return excessMessage(portsInUse(tenant, used), tenant);
    return undefined;
  }

  /** Counts a Service that is served, in place of what was counted of it before. */
  use(tenant: string, service: ServiceObject, ports: number): void {
    this.drop(service.uid);
    const used = this.#of(tenant);
    used.services.set(service.uid, { service, ports });
    used.ports += ports;
    used.named = undefined;
    this.#tenantOf.set(service.uid, tenant);
  }

  /** It is not served any more. */
  drop(uid: string): void {
    const tenant = this.#tenantOf.get(uid);
    if (tenant === undefined) return;
    const used = this.#of(tenant);
    used.ports -= used.services.get(uid)?.ports ?? 0;
    used.services.delete(uid);
    used.named = undefined;
    this.#tenantOf.delete(uid);
  }

  usedBy(tenant: string): { readonly services: number; readonly ports: number } {
    const { services, ports } = this.#of(tenant);
    return { services: services.size, ports };
  }

  /** For whom a Service is counted; undefined: it is not. */
  tenantOf(uid: string): string | undefined {
    return this.#tenantOf.get(uid);
  }

  /** How many of its ports are counted. */
  portsOf(uid: string): number {
    return this.#of(this.#tenantOf.get(uid) ?? '').services.get(uid)?.ports ?? 0;
  }

  #of(tenant: string): Used {
    const used = this.#byTenant.get(tenant) ?? { services: new Map(), ports: 0, named: undefined };
    this.#byTenant.set(tenant, used);
    return used;
  }
}

interface Used {
  /** By UID. */
  readonly services: Map<string, { readonly service: ServiceObject; readonly ports: number }>;
  /** Of all of them. */
  ports: number;
  /** What messages call them, until there are others: a tenant may have thousands, and thousands that are refused for them. */
  named: { readonly by: Tenant; readonly text: string } | undefined;
}

function servicesMessage(tenant: Tenant, used: Used): string {
  if (tenant.limits.services === 0) return `tenant "${tenant.name}" may have no load balancers; ${askFor(tenant)}`;
  return `${servicesInUse(tenant, used)}; delete one or ${askFor(tenant)}`;
}

function servicesInUse(tenant: Tenant, used: Used): string {
  return `${used.services.size} of ${tenant.limits.services ?? 0} load balancers of tenant "${tenant.name}" are in use (${names(tenant, used)})`;
}

/** `wanted`: by a new Service; undefined: it is one more of a Service that is served. */
function portsMessage(tenant: Tenant, used: Used, wanted?: number): string {
  const limit = tenant.limits.ports ?? 0;
  if (limit === 0) return `tenant "${tenant.name}" may have no listener ports; ${askFor(tenant)}`;
  if (wanted !== undefined && wanted > limit) {
    return `this Service has ${wanted} ports, and tenant "${tenant.name}" may have no more than ${limit} in all; use fewer or ${askFor(tenant)}`;
  }
  const wants = wanted === undefined ? 'this one is too many' : `this Service has ${wanted}`;
  return `${portsInUse(tenant, used)}, ${wants}; delete some or ${askFor(tenant)}`;
}

function portsInUse(tenant: Tenant, used: Used): string {
  const users = used.services.size === 0 ? '' : ` (${names(tenant, used)})`;
  return `${used.ports} of ${tenant.limits.ports ?? 0} listener ports of tenant "${tenant.name}" are in use${users}`;
}

function excessMessage(inUse: string, tenant: Tenant): string {
  return `${inUse}; what serves goes on, nothing new is taken until it fits: delete some or ${askFor(tenant)}`;
}

function askFor(tenant: Tenant): string {
  return `ask for a higher limit in ${policyText(tenant.policy)}`;
}

/**
 * With their namespace where the tenant has several. What a namespace in dispute had under this tenant's name counts on, but is
 * somebody else's: it is not named.
 */
function names(tenant: Tenant, used: Used): string {
  if (used.named?.by !== tenant) used.named = { by: tenant, text: namesOf(tenant, used) };
  return used.named.text;
}

function namesOf(tenant: Tenant, used: Used): string {
  const own = new Set(tenant.namespaces);
  const services = [...used.services.values()]
    .map(({ service }) => service)
    .filter(({ namespace }) => own.has(namespace));
  const others = used.services.size - services.length;
  const texts = services.map(({ namespace, name }) => (own.size > 1 ? `${namespace}/${name}` : name)).sort();
  const all = texts.length === 0 ? [] : [listed(texts)];
  return [...all, ...(others === 0 ? [] : [`${others} of other namespaces`])].join(' and ');
}
