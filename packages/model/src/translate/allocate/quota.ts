import { bytesText, countOf, joinItems } from '../../message-text.ts';
import type { ServiceObject } from '../../snapshot.ts';
import { policyText, type Tenant } from '../tenancy.ts';

/** A question that a decision asks about the limits of a tenant. */
export interface QuotaQuery {
  /**
   * Selects the answer. `service`: why the tenant cannot have another Service with `ports` ports and `bytes` in the table; undefined if it
   * can. `ports left`: how many more ports the tenant may have, at most `ports`. `port`: the message for one more port, which exceeds the
   * limit. `settings`: why a served Service cannot have settings that take `bytes` more; undefined if it can.
   */
  readonly kind: 'service' | 'ports left' | 'port' | 'settings';
  readonly ports: number;
  readonly bytes: number;
}

export type QuotaResult = string | number | undefined;

/** Tracks how much of its limits each tenant uses, and which Services wait for the limits of a tenant. */
export class Quota {
  /**
   * The usage of each tenant, by name. Holds only tenants with counted or waiting Services, because a controller that runs for months
   * sees many tenants come and go.
   */
  readonly #byTenant = new Map<string, QuotaUsage>();
  readonly #tenantByUid = new Map<string, string>();
  readonly #waitingTenantByUid = new Map<string, string>();

  /** Answers a question about a new Service or new ports. The new Service or ports must not be counted yet. */
  evaluate(tenant: Tenant, { kind, ports, bytes }: QuotaQuery): QuotaResult {
    const used = this.#usageFor(tenant.name);
    const { limits } = tenant;
    const isTooLarge = used.bytes + bytes > (limits.tableBytes ?? Infinity);
    switch (kind) {
      case 'service':
        if (used.services.size >= (limits.services ?? Infinity)) return serviceLimitMessage(tenant, used);
        if (used.ports + ports > (limits.ports ?? Infinity)) return portLimitMessage(tenant, used, ports);
        return isTooLarge ? tableLimitMessage(tenant, 'this Service takes', bytes) : undefined;
      case 'settings':
        return isTooLarge
          ? tableLimitMessage(tenant, 'the new settings of this Service take another', bytes)
          : undefined;
      case 'ports left':
        return Math.min(ports, Math.max(0, (limits.ports ?? Infinity) - used.ports));
      case 'port':
        return portLimitMessage(tenant, used);
    }
  }

  /**
   * Returns the message for a tenant that uses more than its limits, otherwise undefined. A tenant can exceed its limits because a
   * lowered limit does not stop Services that are served.
   */
  excessOf(tenant: Tenant): string | undefined {
    return excessMessage(tenant, this.#usageFor(tenant.name));
  }

  /** Counts a Service for a tenant. Replaces the former count of the Service. */
  count(tenant: string, service: ServiceObject, { ports, bytes }: ServiceUsage): void {
    this.uncount(service.uid);
    const used = this.#storedUsageFor(tenant);
    used.services.set(service.uid, { service, ports, bytes });
    used.ports += ports;
    used.bytes += bytes;
    used.cachedNames = undefined;
    this.#tenantByUid.set(service.uid, tenant);
  }

  /** Removes the count of a Service. */
  uncount(uid: string): void {
    const tenant = this.#tenantByUid.get(uid);
    if (tenant === undefined) return;
    const used = this.#usageFor(tenant);
    used.ports -= used.services.get(uid)?.ports ?? 0;
    used.bytes -= used.services.get(uid)?.bytes ?? 0;
    used.services.delete(uid);
    used.cachedNames = undefined;
    this.#tenantByUid.delete(uid);
    this.#deleteIfUnused(tenant);
  }

  usageOf(tenant: string): { readonly services: number; readonly ports: number } {
    const { services, ports } = this.#usageFor(tenant);
    return { services: services.size, ports };
  }

  /** Returns the bytes that the Services of a tenant take in the table, without their endpoints. */
  bytesOf(tenant: string): number {
    return this.#usageFor(tenant).bytes;
  }

  /** Returns the tenant for which a Service is counted; undefined if the Service is not counted. */
  tenantOf(uid: string): string | undefined {
    return this.#tenantByUid.get(uid);
  }

  /** Returns what is counted for a Service. */
  serviceUsageOf(uid: string): ServiceUsage {
    return this.#usageFor(this.#tenantByUid.get(uid) ?? '').services.get(uid) ?? NO_USAGE;
  }

  /** Records for which tenant's limits a Service waits. `tenant` is undefined if no limit refuses the Service. */
  setWaiting(uid: string, tenant: string | undefined): void {
    const before = this.#waitingTenantByUid.get(uid);
    if (before === tenant) return;
    if (before !== undefined) {
      this.#usageFor(before).waiting.delete(uid);
      this.#deleteIfUnused(before);
    }
    if (tenant === undefined) this.#waitingTenantByUid.delete(uid);
    else {
      this.#storedUsageFor(tenant).waiting.add(uid);
      this.#waitingTenantByUid.set(uid, tenant);
    }
  }

  /** Reports whether so many Services wait for the tenant's limits that messages do not list the Services that use up the limits. */
  isCrowded(tenant: string): boolean {
    return isCrowded(this.#usageFor(tenant));
  }

  waitingTenantOf(uid: string): string | undefined {
    return this.#waitingTenantByUid.get(uid);
  }

  /** Returns the usage of a tenant. Does not store the empty usage of an unknown tenant. */
  #usageFor(tenant: string): QuotaUsage {
    return (
      this.#byTenant.get(tenant) ?? {
        services: new Map(),
        ports: 0,
        bytes: 0,
        waiting: new Set(),
        cachedNames: undefined,
      }
    );
  }

  /** Returns the usage of a tenant, and stores the empty usage of an unknown tenant. */
  #storedUsageFor(tenant: string): QuotaUsage {
    const used = this.#usageFor(tenant);
    this.#byTenant.set(tenant, used);
    return used;
  }

  #deleteIfUnused(tenant: string): void {
    const { services, waiting } = this.#usageFor(tenant);
    if (services.size === 0 && waiting.size === 0) this.#byTenant.delete(tenant);
  }
}

/** What one Service uses of its tenant's limits. */
export interface ServiceUsage {
  /** The number of ports, each counted once for each node. */
  readonly ports: number;
  /** The bytes of the Service in the table, without its endpoints. */
  readonly bytes: number;
}

const NO_USAGE: ServiceUsage = { ports: 0, bytes: 0 };

/**
 * The questions that one decision asked about the limits of a tenant, with the results. The decision stays valid as long as every
 * question has the same result.
 */
export interface QuotaDependency {
  readonly tenant: string;
  readonly results: readonly { readonly query: QuotaQuery; readonly result: QuotaResult }[];
}

/** Asks on how many nodes the Service with this UID may have `ports` ports. */
export interface NodeQuery {
  readonly uid: string;
  readonly ports: number;
  /** The number of nodes that the Service wants. */
  readonly nodeCount: number;
}

/** Answers the questions of one decision about the limits of a tenant, and records the questions with their results. */
export class QuotaRecorder {
  readonly #quota: Quota;
  readonly #results = new Map<string, QuotaDependency['results'][number]>();
  #tenant: string | undefined;

  constructor(quota: Quota) {
    this.#quota = quota;
  }

  /** The recorded questions and results; undefined if the decision does not depend on the tenant's usage. */
  get dependency(): QuotaDependency | undefined {
    return this.#tenant === undefined ? undefined : { tenant: this.#tenant, results: [...this.#results.values()] };
  }

  /** Returns why the tenant cannot have another Service with this usage; undefined if it can. */
  refusalFor(tenant: Tenant, usage: ServiceUsage): string | undefined {
    return this.#evaluate(tenant, { kind: 'service', ...usage }) as string | undefined;
  }

  /** Returns why a served Service cannot have settings that take `bytes` more in the table; undefined if it can. */
  settingsRefusalFor(tenant: Tenant, bytes: number): string | undefined {
    return this.#evaluate(tenant, { kind: 'settings', ports: 0, bytes }) as string | undefined;
  }

  /** Returns how many more ports the tenant may have, at most `wanted`. */
  portsLeft(tenant: Tenant, wanted: number): number {
    return this.#evaluate(tenant, { kind: 'ports left', ports: wanted, bytes: 0 }) as number;
  }

  /**
   * Returns on how many nodes, at most `nodeCount`, a Service may have its ports within the tenant's limit, because each port counts once
   * for each node.
   */
  nodesWithin(tenant: Tenant, { uid, ports, nodeCount }: NodeQuery): number {
    const { ports: counted } = this.#quota.serviceUsageOf(uid);
    const wanted = ports * nodeCount - counted;
    if (wanted <= 0) return nodeCount;
    return Math.floor((counted + this.portsLeft(tenant, wanted)) / ports);
  }

  /** Returns the message for one more port of a Service if this port exceeds the limit. */
  portRefusalFor(tenant: Tenant): string {
    return this.#evaluate(tenant, { kind: 'port', ports: 1, bytes: 0 }) as string;
  }

  #evaluate(tenant: Tenant, query: QuotaQuery): QuotaResult {
    const result = this.#quota.evaluate(tenant, query);
    const { services, ports, tableBytes } = tenant.limits;
    if (services === undefined && ports === undefined && tableBytes === undefined) return result;
    this.#tenant = tenant.name;
    this.#results.set(`${query.kind} ${query.ports} ${query.bytes}`, { query, result });
    return result;
  }
}

/** What one tenant uses of its limits, and which Services wait for these limits. */
export interface QuotaUsage {
  /** The counted Services with their usage, by UID. */
  readonly services: Map<string, ServiceUsage & { readonly service: ServiceObject }>;
  /** The sums of the ports and bytes of all counted Services. */
  ports: number;
  bytes: number;
  /** UIDs of the Services that the limits refuse. */
  readonly waiting: Set<string>;
  /**
   * The list of Service names for messages, cached until the Services change. Without the cache, every refused Service would sort the
   * names of all counted Services again.
   */
  cachedNames: { readonly by: Tenant; readonly text: string } | undefined;
}

/**
 * If more Services than this wait, messages do not list the Services that use up a limit. The list changes whenever the tenant gains or
 * loses a Service, and every change would require a new message for each waiting Service. If many Services wait, messages contain only
 * facts that rarely change.
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
    return `${all} in use, and many more Services wait; delete some Services or ${higherLimitHelp(tenant)}`;
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
 * Returns the message for ports that exceed the limit. `wanted` is the number of ports of a new Service. It is undefined
 * if the message is for one more port of a Service that is already served.
 */
export function portLimitMessage(tenant: Tenant, used: QuotaUsage, wanted?: number): string {
  const limit = tenant.limits.ports ?? 0;
  if (limit === 0) return `tenant "${tenant.name}" may have no listener ports; ${higherLimitHelp(tenant)}`;
  if (wanted !== undefined && wanted > limit) {
    return `this Service has ${wanted} ports, and tenant "${tenant.name}" may have no more than ${limit} in all; use fewer or ${higherLimitHelp(tenant)}`;
  }
  if (isCrowded(used) && limit === 1) {
    return `${onlyText(tenant, 'listener port')} in use, and many more Services wait; delete some Services or ${higherLimitHelp(tenant)}`;
  }
  if (isCrowded(used)) {
    const wants =
      wanted === undefined ? 'none is left for this port' : `too few are left for this Service, which needs ${wanted}`;
    return `tenant "${tenant.name}" may have ${countOf(limit, 'listener port')}, of which ${wants}, and many more Services wait; delete some Services or ${higherLimitHelp(tenant)}`;
  }
  const wants = wanted === undefined ? 'none is left for this port' : `this Service needs ${wanted}`;
  return `${portsInUse(tenant, used)}, and ${wants}; delete some or ${higherLimitHelp(tenant)}`;
}

function portsInUse(tenant: Tenant, used: QuotaUsage): string {
  const users = used.services.size === 0 ? '' : ` (${serviceNames(tenant, used)}; a port counts once for each node)`;
  return `${used.ports} of ${tenant.limits.ports ?? 0} listener ports of tenant "${tenant.name}" are in use${users}`;
}

/**
 * Returns the message for a Service or settings that exceed the limit of bytes in the table. The message does not contain the bytes that
 * are in use, because each of their changes would require a new message for each waiting Service.
 */
export function tableLimitMessage(tenant: Tenant, subject: string, bytes: number): string {
  const limit = bytesText(tenant.limits.tableBytes ?? 0);
  return `${subject} ${bytesText(bytes)} in the routing table, and too little is left of the ${limit} that tenant "${tenant.name}" may have (limits.tableBytes); use fewer source ranges, hosts, ports or error pages, delete a Service, or ${higherLimitHelp(tenant)}`;
}

/** Returns the message for a tenant that uses more than its limits; undefined if the tenant is within its limits. */
export function excessMessage(tenant: Tenant, used: QuotaUsage): string | undefined {
  const { services = Infinity, ports = Infinity, tableBytes = Infinity } = tenant.limits;
  if (used.services.size > services) return excessText(tenant, used, countOf(services, 'load balancer'), servicesInUse);
  if (used.ports > ports) return excessText(tenant, used, countOf(ports, 'listener port'), portsInUse);
  if (used.bytes > tableBytes)
    return excessText(tenant, used, `${bytesText(tableBytes)} in the routing table`, bytesInUse);
  return undefined;
}

function bytesInUse(tenant: Tenant, used: QuotaUsage): string {
  return `the Services of tenant "${tenant.name}" take more than the ${bytesText(tenant.limits.tableBytes ?? 0)} in the routing table that the tenant may have (${serviceNames(tenant, used)})`;
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

/** Returns the names of the counted Services for a message. The names include the namespace if the tenant has several namespaces. */
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
