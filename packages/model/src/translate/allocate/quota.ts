import type { ServiceObject } from '../../snapshot.ts';
import type { Tenant } from '../tenancy.ts';
import { excessMessage, isCrowded, portLimitMessage, serviceLimitMessage, type TenantUsage } from './quota-messages.ts';

// What each tenant uses of its counted limits, filled in the order in which Services are served.

/** What a decision may want to know of a tenant's limits. */
export interface QuotaQuery {
  /**
   * `service`: why the tenant cannot have one more Service with so many ports; undefined: it can. `ports left`: how many of so many
   * further ports it may have. `port`: why one further port of a Service is one too many.
   */
  readonly kind: 'service' | 'ports left' | 'port';
  readonly ports: number;
}

export type QuotaResult = string | number | undefined;

export class Quota {
  /** Those of whom something is counted, or for whose limits somebody waits: namespaces come and go for months. */
  readonly #byTenant = new Map<string, TenantUsage>();
  readonly #tenantByUid = new Map<string, string>();
  readonly #waitingTenantByUid = new Map<string, string>();

  /** A question of a Service that is not counted, or not with these ports. */
  evaluate(tenant: Tenant, { kind, ports }: QuotaQuery): QuotaResult {
    const used = this.#usageFor(tenant.name);
    const { limits } = tenant;
    switch (kind) {
      case 'service':
        if (used.services.size >= (limits.services ?? Infinity)) return serviceLimitMessage(tenant, used);
        return used.ports + ports > (limits.ports ?? Infinity) ? portLimitMessage(tenant, used, ports) : undefined;
      case 'ports left':
        return Math.min(ports, Math.max(0, (limits.ports ?? Infinity) - used.ports));
      case 'port':
        return portLimitMessage(tenant, used);
    }
  }

  /** What is over the limit, if anything: limits are lowered without cutting what serves. */
  excessOf(tenant: Tenant): string | undefined {
    return excessMessage(tenant, this.#usageFor(tenant.name));
  }

  /** Counts a Service that is served, in place of what was counted of it before. */
  count(tenant: string, service: ServiceObject, ports: number): void {
    this.uncount(service.uid);
    const used = this.#storedUsageFor(tenant);
    used.services.set(service.uid, { service, ports });
    used.ports += ports;
    used.cachedNames = undefined;
    this.#tenantByUid.set(service.uid, tenant);
  }

  /** It is not served any more. */
  uncount(uid: string): void {
    const tenant = this.#tenantByUid.get(uid);
    if (tenant === undefined) return;
    const used = this.#usageFor(tenant);
    used.ports -= used.services.get(uid)?.ports ?? 0;
    used.services.delete(uid);
    used.cachedNames = undefined;
    this.#tenantByUid.delete(uid);
    this.#deleteIfUnused(tenant);
  }

  usageOf(tenant: string): { readonly services: number; readonly ports: number } {
    const { services, ports } = this.#usageFor(tenant);
    return { services: services.size, ports };
  }

  /** For whom a Service is counted; undefined: it is not. */
  tenantOf(uid: string): string | undefined {
    return this.#tenantByUid.get(uid);
  }

  /** How many of its ports are counted. */
  portsOf(uid: string): number {
    return this.#usageFor(this.#tenantByUid.get(uid) ?? '').services.get(uid)?.ports ?? 0;
  }

  /** Which tenant's limits keep it waiting; undefined: none. */
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

  /** So many wait for its limits that none of them is told by name who is in its way. */
  isCrowded(tenant: string): boolean {
    return isCrowded(this.#usageFor(tenant));
  }

  waitingTenantOf(uid: string): string | undefined {
    return this.#waitingTenantByUid.get(uid);
  }

  /** To be read. */
  #usageFor(tenant: string): TenantUsage {
    return this.#byTenant.get(tenant) ?? { services: new Map(), ports: 0, waiting: new Set(), cachedNames: undefined };
  }

  /** To be added to. */
  #storedUsageFor(tenant: string): TenantUsage {
    const used = this.#usageFor(tenant);
    this.#byTenant.set(tenant, used);
    return used;
  }

  #deleteIfUnused(tenant: string): void {
    const { services, waiting } = this.#usageFor(tenant);
    if (services.size === 0 && waiting.size === 0) this.#byTenant.delete(tenant);
  }
}

/** What one decision wanted to know of the limits of its tenant, and was told: while the answers are the same, so is the decision. */
export interface QuotaDependency {
  readonly tenant: string;
  readonly results: readonly { readonly question: QuotaQuery; readonly answer: QuotaResult }[];
}

/** The quota as one decision sees it. */
export class QuotaRecorder {
  readonly #quota: Quota;
  readonly #results = new Map<string, QuotaDependency['results'][number]>();
  #tenant: string | undefined;

  constructor(quota: Quota) {
    this.#quota = quota;
  }

  /** Undefined: whatever the tenant uses makes no difference. */
  get dependency(): QuotaDependency | undefined {
    return this.#tenant === undefined ? undefined : { tenant: this.#tenant, results: [...this.#results.values()] };
  }

  /** Why the tenant cannot have one more Service with so many ports; undefined: it can. */
  refusalFor(tenant: Tenant, ports: number): string | undefined {
    return this.#evaluate(tenant, { kind: 'service', ports }) as string | undefined;
  }

  /** How many of so many further ports the tenant may have. */
  portsLeft(tenant: Tenant, wanted: number): number {
    return this.#evaluate(tenant, { kind: 'ports left', ports: wanted }) as number;
  }

  /** Why one further port of a Service is one too many. */
  portRefusalFor(tenant: Tenant): string {
    return this.#evaluate(tenant, { kind: 'port', ports: 1 }) as string;
  }

  count(tenant: string, service: ServiceObject, ports: number): void {
    this.#quota.count(tenant, service, ports);
  }

  #evaluate(tenant: Tenant, question: QuotaQuery): QuotaResult {
    const answer = this.#quota.evaluate(tenant, question);
    const { services, ports } = tenant.limits;
    if (services === undefined && ports === undefined) return answer;
    this.#tenant = tenant.name;
    this.#results.set(`${question.kind} ${question.ports}`, { question, answer });
    return answer;
  }
}
