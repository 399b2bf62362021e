// What each tenant uses of its counted limits, filled in the order in which Services are served.
import type { ServiceObject } from '../snapshot.ts';
import { policyText, type Tenant } from './tenancy.ts';
import { counted, listed } from './text.ts';

export interface Quota {
  /** Why the tenant cannot have one more Service with so many ports; undefined: it can. */
  readonly refusalFor: (tenant: Tenant, ports: number) => string | undefined;
  /** How many more ports the tenant may have. */
  readonly portsLeft: (tenant: Tenant) => number;
  /** Why this further port of a Service is one too many. */
  readonly portRefusalFor: (tenant: Tenant) => string;
  /** Counts a Service that is served; returns what is over the limit now, if anything. */
  readonly use: (tenant: Tenant, service: ServiceObject, ports: number) => string | undefined;
  readonly usedBy: (tenant: string) => { readonly services: number; readonly ports: number };
}

interface Used {
  readonly services: ServiceObject[];
  readonly ports: Map<ServiceObject, number>;
}

export function createQuota(): Quota {
  const byTenant = new Map<string, Used>();
  const usedBy = (tenant: string): Used => {
    const used = byTenant.get(tenant) ?? { services: [], ports: new Map() };
    byTenant.set(tenant, used);
    return used;
  };
  const portRefusalFor = (tenant: Tenant): string => portsMessage(tenant, usedBy(tenant.name));
  return {
    refusalFor(tenant, ports) {
      const used = usedBy(tenant.name);
      if (used.services.length >= (tenant.limits.services ?? Infinity)) return servicesMessage(tenant, used);
      if (sum(used) + ports > (tenant.limits.ports ?? Infinity)) return portsMessage(tenant, used, ports);
      return undefined;
    },
    portsLeft: (tenant) => Math.max(0, (tenant.limits.ports ?? Infinity) - sum(usedBy(tenant.name))),
    portRefusalFor,
    use(tenant, service, ports) {
      const used = usedBy(tenant.name);
      used.services.push(service);
      used.ports.set(service, ports);
      if (used.services.length > (tenant.limits.services ?? Infinity)) return overMessage(tenant, 'services', used);
      if (sum(used) > (tenant.limits.ports ?? Infinity)) return overMessage(tenant, 'ports', used);
      return undefined;
    },
    usedBy: (tenant) => ({ services: usedBy(tenant).services.length, ports: sum(usedBy(tenant)) }),
  };
}

function sum(used: Used): number {
  let total = 0;
  for (const ports of used.ports.values()) total += ports;
  return total;
}

function servicesMessage(tenant: Tenant, used: Used): string {
  const limit = tenant.limits.services ?? 0;
  if (limit === 0) return `tenant "${tenant.name}" may have no load balancers; ${askFor(tenant)}`;
  return `${used.services.length} of ${counted(limit, 'load balancer')} of tenant "${tenant.name}" are in use (${names(tenant, used)}); delete one or ${askFor(tenant)}`;
}

function portsMessage(tenant: Tenant, used: Used, wanted?: number): string {
  const limit = tenant.limits.ports ?? 0;
  const wants = wanted === undefined ? 'this one is too many' : `this Service has ${wanted}`;
  const users = used.services.length === 0 ? '' : ` (${names(tenant, used)})`;
  return `${sum(used)} of ${counted(limit, 'listener port')} of tenant "${tenant.name}" are in use${users}, ${wants}; delete some or ${askFor(tenant)}`;
}

function overMessage(tenant: Tenant, limit: 'services' | 'ports', used: Used): string {
  const has = limit === 'services' ? used.services.length : sum(used);
  return `tenant "${tenant.name}" has ${has} of ${tenant.limits[limit] ?? 0} ${limit}; what serves goes on, nothing new is taken until it fits`;
}

function askFor(tenant: Tenant): string {
  return `ask for a higher limit in ${policyText(tenant.policy)}`;
}

/** With their namespace where the tenant has several. */
function names(tenant: Tenant, used: Used): string {
  const text = ({ namespace, name }: ServiceObject): string =>
    tenant.namespaces.length > 1 ? `${namespace}/${name}` : name;
  return listed(used.services.map(text).sort());
}
