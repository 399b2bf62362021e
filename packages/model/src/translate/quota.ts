// What each tenant uses of its counted limits, filled in the order in which Services are served.
import type { ServiceObject } from '../snapshot.ts';
import { policyText, type Tenant } from './tenancy.ts';
import { listed } from './text.ts';

export interface Quota {
  /** Why the tenant cannot have one more Service with so many ports; undefined: it can. */
  readonly refusalFor: (tenant: Tenant, ports: number) => string | undefined;
  /** How many more ports the tenant may have. */
  readonly portsLeft: (tenant: Tenant) => number;
  /** Why one further port of a Service is one too many. */
  readonly portRefusalFor: (tenant: Tenant) => string;
  /** What is over the limit, if anything: limits are lowered without cutting what serves. */
  readonly excessOf: (tenant: Tenant) => string | undefined;
  /** Counts a Service that is served, in place of what was counted of it before. */
  readonly use: (tenant: string, service: ServiceObject, ports: number) => void;
  readonly usedBy: (tenant: string) => { readonly services: number; readonly ports: number };
}

/** Ports by Service. */
type Used = Map<ServiceObject, number>;

export function createQuota(): Quota {
  const byTenant = new Map<string, Used>();
  const usedBy = (tenant: string): Used => {
    const used = byTenant.get(tenant) ?? new Map();
    byTenant.set(tenant, used);
    return used;
  };
  return {
    refusalFor(tenant, ports) {
      const used = usedBy(tenant.name);
      if (used.size >= (tenant.limits.services ?? Infinity)) return servicesMessage(tenant, used);
      if (sum(used) + ports > (tenant.limits.ports ?? Infinity)) return portsMessage(tenant, used, ports);
      return undefined;
    },
    portsLeft: (tenant) => Math.max(0, (tenant.limits.ports ?? Infinity) - sum(usedBy(tenant.name))),
    portRefusalFor: (tenant) => portsMessage(tenant, usedBy(tenant.name)),
    excessOf(tenant) {
      const used = usedBy(tenant.name);
      if (used.size > (tenant.limits.services ?? Infinity)) return excessMessage(tenant, 'services', used.size);
      if (sum(used) > (tenant.limits.ports ?? Infinity)) return excessMessage(tenant, 'ports', sum(used));
      return undefined;
    },
    use: (tenant, service, ports) => usedBy(tenant).set(service, ports),
    usedBy: (tenant) => ({ services: usedBy(tenant).size, ports: sum(usedBy(tenant)) }),
  };
}

function sum(used: Used): number {
  let total = 0;
  for (const ports of used.values()) total += ports;
  return total;
}

function servicesMessage(tenant: Tenant, used: Used): string {
  const limit = tenant.limits.services ?? 0;
  if (limit === 0) return `tenant "${tenant.name}" may have no load balancers; ${askFor(tenant)}`;
  return `${used.size} of ${limit} load balancers of tenant "${tenant.name}" are in use (${names(tenant, used)}); delete one or ${askFor(tenant)}`;
}

function portsMessage(tenant: Tenant, used: Used, wanted?: number): string {
  const limit = tenant.limits.ports ?? 0;
  const wants = wanted === undefined ? 'this one is too many' : `this Service has ${wanted}`;
  const users = used.size === 0 ? '' : ` (${names(tenant, used)})`;
  return `${sum(used)} of ${limit} listener ports of tenant "${tenant.name}" are in use${users}, ${wants}; delete some or ${askFor(tenant)}`;
}

function excessMessage(tenant: Tenant, limit: 'services' | 'ports', has: number): string {
  return `tenant "${tenant.name}" has ${has} of ${tenant.limits[limit] ?? 0} ${limit}; what serves goes on, nothing new is taken until it fits`;
}

function askFor(tenant: Tenant): string {
  return `ask for a higher limit in ${policyText(tenant.policy)}`;
}

/** With their namespace where the tenant has several. */
function names(tenant: Tenant, used: Used): string {
  const text = ({ namespace, name }: ServiceObject): string =>
    tenant.namespaces.length > 1 ? `${namespace}/${name}` : name;
  return listed([...used.keys()].map(text).sort());
}
