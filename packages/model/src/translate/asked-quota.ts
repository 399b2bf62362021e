import type { ServiceObject } from '../snapshot.ts';
import type { Answer, Question, Quota } from './quota.ts';
import type { Tenant } from './tenancy.ts';

/** What one decision wanted to know of the limits of its tenant, and was told: while the answers are the same, so is the decision. */
export interface Asked {
  readonly tenant: string;
  readonly answers: readonly { readonly question: Question; readonly answer: Answer }[];
}

/** The quota as one decision sees it. */
export class AskedQuota {
  readonly #quota: Quota;
  readonly #answers = new Map<string, Asked['answers'][number]>();
  #tenant: string | undefined;

  constructor(quota: Quota) {
    this.#quota = quota;
  }

  /** Undefined: whatever the tenant uses makes no difference. */
  get asked(): Asked | undefined {
    return this.#tenant === undefined ? undefined : { tenant: this.#tenant, answers: [...this.#answers.values()] };
  }

  /** Why the tenant cannot have one more Service with so many ports; undefined: it can. */
  refusalFor(tenant: Tenant, ports: number): string | undefined {
    return this.#ask(tenant, { kind: 'service', ports }) as string | undefined;
  }

  /** How many of so many further ports the tenant may have. */
  portsLeft(tenant: Tenant, wanted: number): number {
    return this.#ask(tenant, { kind: 'ports left', ports: wanted }) as number;
  }

  /** Why one further port of a Service is one too many. */
  portRefusalFor(tenant: Tenant): string {
    return this.#ask(tenant, { kind: 'port', ports: 1 }) as string;
  }

  use(tenant: string, service: ServiceObject, ports: number): void {
    this.#quota.use(tenant, service, ports);
  }

  #ask(tenant: Tenant, question: Question): Answer {
    const answer = this.#quota.answer(tenant, question);
    const { services, ports } = tenant.limits;
    if (services === undefined && ports === undefined) return answer;
    this.#tenant = tenant.name;
    this.#answers.set(`${question.kind} ${question.ports}`, { question, answer });
    return answer;
  }
}
