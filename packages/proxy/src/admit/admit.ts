// Whether one more connection or UDP flow of a Service is let in, as far as limits go. The one door to them.
import { type Client, clientNetwork, type Route } from '@weir/model/data-plane';
import type { Budget, BudgetRefusal } from './budget.ts';
import type { ClientCounts, ClientMark } from './client-counts.ts';

export type AdmitRefusal = BudgetRefusal | 'no-descriptors';

/** One tenant may have so many times as many places as are left free: alone three quarters of all, two three sevenths each. */
const SHARE_OF_FREE = 3;

/** The budgets that a Service draws on. */
export interface Budgets {
  readonly service: Budget;
  readonly tenant: Budget;
}

export interface AdmitTools {
  readonly clients: ClientCounts;
  /** All tenants of this proxy: as many as there are descriptors for. */
  readonly everybody: Budget;
  /** Nanoseconds, the same in all threads. */
  readonly now: () => bigint;
}

/**
 * A place, or why there is none. What is asked of few comes last: a rate is not used up by what other limits refuse. The
 * cap per client is for `capClient`, when the client is known.
 */
export function admit(budgets: Budgets, tools: AdmitTools): Grant | AdmitRefusal {
  const { service, tenant } = budgets;
  if (!service.open()) return 'connection-limit';
  if (!tenant.open()) {
    service.close();
    return 'connection-limit';
  }
  tools.everybody.count();
  const refusal = laterRefusal(budgets, tools);
  if (refusal === undefined) return new Grant(budgets, tools);
  tools.everybody.close();
  tenant.close();
  service.close();
  return refusal;
}

function laterRefusal({ service, tenant }: Budgets, { everybody, now }: AdmitTools): AdmitRefusal | undefined {
  if (!hasShare(tenant, everybody)) return 'no-descriptors';
  return service.takeNew(now) && tenant.takeNew(now) ? undefined : 'rate-limit';
}

/**
 * Whoever has no limit leaves room for others all the same (dynamic thresholds of Choudhury and Hahne, 1998): however many
 * tenants take what they can, some places stay free, and a tenant that has few gets them.
 */
function hasShare(tenant: Budget, everybody: Budget): boolean {
  const places = everybody.mostOpen;
  return places === Number.POSITIVE_INFINITY || tenant.opened <= SHARE_OF_FREE * (places - everybody.opened);
}

/** A place that is taken until `release`. It stays with the budgets that gave it, also when its Service changes hands. */
export class Grant {
  readonly budgets: Budgets;
  readonly #tools: AdmitTools;
  #client: ClientMark | undefined;
  #isReleased = false;

  constructor(budgets: Budgets, tools: AdmitTools) {
    this.budgets = budgets;
    this.#tools = tools;
  }

  /** Whether this client may have one more of the Service. It is not even asked who it is where nothing caps it. */
  capClient({ service, settings }: Pick<Route, 'service' | 'settings'>, client: Client): boolean {
    const most = settings.limits.connectionsPerClient;
    if (most === null) return true;
    this.#client = this.#tools.clients.open(`${service.uid}/${clientNetwork(client.address)}`, most);
    return this.#client !== undefined;
  }

  /** Once; again does nothing. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.budgets.service.close();
    this.budgets.tenant.close();
    this.#tools.everybody.close();
    if (this.#client !== undefined) this.#tools.clients.close(this.#client);
  }
}
