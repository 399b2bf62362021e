// What each tenant uses of its counted limits, filled in the order in which Services are served.
import type { ServiceObject } from '../snapshot.ts';
import { excessMessage, isCrowd, portsMessage, servicesMessage, type Used } from './quota-text.ts';
import type { Tenant } from './tenancy.ts';

/** What a decision may want to know of a tenant's limits. */
export interface Question {
  /**
   * `service`: why the tenant cannot have one more Service with so many ports; undefined: it can. `ports left`: how many of so many
   * further ports it may have. `port`: why one further port of a Service is one too many.
   */
  readonly kind: 'service' | 'ports left' | 'port';
  readonly ports: number;
}

export type Answer = string | number | undefined;

export class Quota {
  /** Those of whom something is counted, or for whose limits somebody waits: namespaces come and go for months. */
  readonly #byTenant = new Map<string, Used>();
  readonly #tenantOf = new Map<string, string>();
  readonly #waitsFor = new Map<string, string>();

  /** A question of a Service that is not counted, or not with these ports. */
  answer(tenant: Tenant, { kind, ports }: Question): Answer {
    const used = this.#of(tenant.name);
    const { limits } = tenant;
    switch (kind) {
      case 'service':
        if (used.services.size >= (limits.services ?? Infinity)) return servicesMessage(tenant, used);
        return used.ports + ports > (limits.ports ?? Infinity) ? portsMessage(tenant, used, ports) : undefined;
      case 'ports left':
        return Math.min(ports, Math.max(0, (limits.ports ?? Infinity) - used.ports));
      case 'port':
        return portsMessage(tenant, used);
    }
  }

  /** What is over the limit, if anything: limits are lowered without cutting what serves. */
  excessOf(tenant: Tenant): string | undefined {
    return excessMessage(tenant, this.#of(tenant.name));
  }

  /** Counts a Service that is served, in place of what was counted of it before. */
  use(tenant: string, service: ServiceObject, ports: number): void {
    this.drop(service.uid);
    const used = this.#kept(tenant);
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
    this.#letGo(tenant);
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

  /** Which tenant's limits keep it waiting; undefined: none. */
  wait(uid: string, tenant: string | undefined): void {
    const before = this.#waitsFor.get(uid);
    if (before === tenant) return;
    if (before !== undefined) {
      this.#of(before).waiting.delete(uid);
      this.#letGo(before);
    }
    if (tenant === undefined) this.#waitsFor.delete(uid);
    else {
      this.#kept(tenant).waiting.add(uid);
      this.#waitsFor.set(uid, tenant);
    }
  }

  /** So many wait for its limits that none of them is told by name who is in its way. */
  isCrowded(tenant: string): boolean {
    return isCrowd(this.#of(tenant));
  }

  waitsFor(uid: string): string | undefined {
    return this.#waitsFor.get(uid);
  }

  /** To be read. */
  #of(tenant: string): Used {
    return this.#byTenant.get(tenant) ?? { services: new Map(), ports: 0, waiting: new Set(), named: undefined };
  }

  /** To be added to. */
  #kept(tenant: string): Used {
    const used = this.#of(tenant);
    this.#byTenant.set(tenant, used);
    return used;
  }

  #letGo(tenant: string): void {
    const { services, waiting } = this.#of(tenant);
    if (services.size === 0 && waiting.size === 0) this.#byTenant.delete(tenant);
  }
}
