// The messages about the limits of a tenant on Services and ports.

import { countOf, joinItems } from '../../message-text.ts';
import type { ServiceObject } from '../../snapshot.ts';
import { policyText, type Tenant } from '../tenancy.ts';

export interface QuotaUsage {
  /** The Services that are served, by UID. */
  readonly services: Map<string, { readonly service: ServiceObject; readonly ports: number }>;
  /** The sum over all Services. */
  ports: number;
  /** UIDs of the Services that the limits refuse. */
  readonly waiting: Set<string>;
  /** The list of Service names in messages, until the Services change: thousands of refused Services may list thousands of names. */
  cachedNames: { readonly by: Tenant; readonly text: string } | undefined;
}

/**
 * The most waiting Services whose messages list the Services that use the limit. Such a list changes with each Service of the
 * tenant, and a tenant may have ten thousand. With more waiting Services, their messages contain only facts that rarely change.
 */
const MAX_NAMED_WAITERS = 100;

export function isCrowded({ waiting }: QuotaUsage): boolean {
  return waiting.size > MAX_NAMED_WAITERS;
}

export function serviceLimitMessage(tenant: Tenant, used: QuotaUsage): string {
  if (tenant.limits.services === 0)
    return `tenant "${tenant.name}" may have no load balancers; ${higherLimitHelp(tenant)}`;
  if (isCrowded(used)) {
    const all = tenant.limits.services === 1 ? onlyText(tenant, 'load balancer') : allText(tenant);
    return `${all} in use, and many more wait; delete some or ${higherLimitHelp(tenant)}`;
  }
  return `${servicesInUse(tenant, used)}; delete one or ${higherLimitHelp(tenant)}`;
}

function onlyText({ name }: Tenant, noun: string): string {
  return `the only ${noun} that tenant "${name}" may have is`;
}

function allText({ name, limits }: Tenant): string {
  return `all ${countOf(limits.services ?? 0, 'load balancer')} that tenant "${name}" may have are`;
}

function servicesInUse(tenant: Tenant, used: QuotaUsage): string {
  return `${used.services.size} of ${tenant.limits.services ?? 0} load balancers of tenant "${tenant.name}" are in use (${serviceNames(tenant, used)})`;
}

/**
 * Returns the message about a limit on ports. `wanted`: the number of ports of a new Service; undefined for another port of a
 * Service that is served.
 */
export function portLimitMessage(tenant: Tenant, used: QuotaUsage, wanted?: number): string {
  const limit = tenant.limits.ports ?? 0;
  if (limit === 0) return `tenant "${tenant.name}" may have no listener ports; ${higherLimitHelp(tenant)}`;
  if (wanted !== undefined && wanted > limit) {
    return `this Service has ${wanted} ports, and tenant "${tenant.name}" may have no more than ${limit} in all; use fewer or ${higherLimitHelp(tenant)}`;
  }
  if (isCrowded(used) && limit === 1) {
    return `${onlyText(tenant, 'listener port')} in use, and many more wait; delete some or ${higherLimitHelp(tenant)}`;
  }
  if (isCrowded(used)) {
    const wants = wanted === undefined ? 'this one is too many' : `too few are left for the ${wanted} of this Service`;
    return `of the ${countOf(limit, 'listener port')} that tenant "${tenant.name}" may have, and for which many wait, ${wants}; delete some or ${higherLimitHelp(tenant)}`;
  }
  const wants = wanted === undefined ? 'this one is too many' : `this Service has ${wanted}`;
  return `${portsInUse(tenant, used)}, ${wants}; delete some or ${higherLimitHelp(tenant)}`;
}

function portsInUse(tenant: Tenant, used: QuotaUsage): string {
  const users = used.services.size === 0 ? '' : ` (${serviceNames(tenant, used)})`;
  return `${used.ports} of ${tenant.limits.ports ?? 0} listener ports of tenant "${tenant.name}" are in use${users}`;
}

/** Why the tenant is over its limits; undefined if it is not. */
export function excessMessage(tenant: Tenant, used: QuotaUsage): string | undefined {
  const { services = Infinity, ports = Infinity } = tenant.limits;
  if (used.services.size > services) return excessText(tenant, used, countOf(services, 'load balancer'), servicesInUse);
  if (used.ports > ports) return excessText(tenant, used, countOf(ports, 'listener port'), portsInUse);
  return undefined;
}

function excessText(tenant: Tenant, used: QuotaUsage, limit: string, inUse: typeof portsInUse): string {
  const excess =
    used.services.size > MAX_NAMED_WAITERS
      ? `tenant "${tenant.name}" has more than the ${limit} that it may have`
      : inUse(tenant, used);
  return `${excess}; existing Services stay served, but nothing new is accepted until the tenant is within its limits: delete some or ${higherLimitHelp(tenant)}`;
}

function higherLimitHelp(tenant: Tenant): string {
  return `ask for a higher limit in ${policyText(tenant.policy)}`;
}

/** The Services of the tenant, with their namespace if the tenant has several namespaces. */
function serviceNames(tenant: Tenant, used: QuotaUsage): string {
  if (used.cachedNames?.by !== tenant) used.cachedNames = { by: tenant, text: listServiceNames(tenant, used) };
  return used.cachedNames.text;
}

function listServiceNames(tenant: Tenant, used: QuotaUsage): string {
  const hasSeveralNamespaces = tenant.namespaces.length > 1;
  const texts = [...used.services.values()].map(({ service: { namespace, name } }) =>
    hasSeveralNamespaces ? `${namespace}/${name}` : name,
  );
  return joinItems(texts.sort());
}
