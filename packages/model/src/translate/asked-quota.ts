import type { ServiceObject } from '../snapshot.ts';
import type { Quota, QuotaQuery, QuotaResult } from './quota.ts';
import type { Tenant } from './tenancy.ts';

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
