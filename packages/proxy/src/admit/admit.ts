// Whether one more connection or UDP flow of a Service is let in, as far as limits go. The one door to them.
import { type Client, clientNetwork, type Route } from '@weir/model';
import type { Budget, BudgetRefusal } from './budget.ts';
import type { ClientCounts, ClientMark } from './client-counts.ts';

export type AdmitRefusal = BudgetRefusal | 'client-limit';

/** The budgets that a Service draws on. */
export interface Budgets {
  readonly service: Budget;
  readonly tenant: Budget;
}

export interface AdmitTools {
  readonly clients: ClientCounts;
  /** Nanoseconds, the same in all threads. */
  readonly now: () => bigint;
}

/**
 * A place, or why there is none. What is asked of few comes last: a rate is not used up by what other limits refuse. The
 * cap per client is for `capClient`, when the client is known.
 */
export function admit({ service, tenant }: Budgets, tools: AdmitTools): Grant | BudgetRefusal {
  if (!service.open()) return 'connection-limit';
  if (!tenant.open()) {
    service.close();
    return 'connection-limit';
  }
  if (service.takeNew(tools.now) && tenant.takeNew(tools.now)) return new Grant({ service, tenant }, tools.clients);
  tenant.close();
  service.close();
  return 'rate-limit';
}

/** A place that is taken until `release`. It stays with the budgets that gave it, also when its Service changes hands. */
export class Grant {
  readonly budgets: Budgets;
  readonly #clients: ClientCounts;
  #client: ClientMark | undefined;
  #isReleased = false;

  constructor(budgets: Budgets, clients: ClientCounts) {
    this.budgets = budgets;
    this.#clients = clients;
  }

  /** Whether this client may have one more of the Service. It is not even asked who it is where nothing caps it. */
  capClient({ service, settings }: Pick<Route, 'service' | 'settings'>, client: Client): boolean {
    const most = settings.limits.connectionsPerClient;
    if (most === null) return true;
    this.#client = this.#clients.open(`${service.uid}/${clientNetwork(client.address)}`, most);
    return this.#client !== undefined;
  }

  /** Once; again does nothing. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.budgets.service.close();
    this.budgets.tenant.close();
    if (this.#client !== undefined) this.#clients.close(this.#client);
  }
}
