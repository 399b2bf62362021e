import type { ServiceView } from '@weir/model';
import type { Clock } from '@weir/runtime';
import {
  type AuthorizationScope,
  isNamespaceVisible,
  scopeKey,
  visibleTenantNames,
} from '../access/authorization-scope.ts';
import type { FleetWatch } from '../fleet/fleet-watch.ts';
import {
  type CurrentRates,
  currentRatesFor,
  type Rate,
  type RateHistory,
  type RatePoint,
  ratePointsFor,
  ZERO_RATE,
} from '../rates/rate-history.ts';

/** The data of a `rates` event of `/api/v1/live`. */
export interface LiveFrame {
  /** Time of the newest sample, as RFC 3339. */
  readonly at: string;
  readonly tenants: readonly TenantRate[];
  readonly services: readonly ServiceRate[];
}

export interface TenantRate extends Rate {
  readonly name: string;
}

export interface ServiceRate extends Rate {
  readonly namespace: string;
  readonly name: string;
  readonly tenant: string | null;
}

/** Returns the frame with the current rates of `tenants` and `services`. A tenant or Service without traffic has zero rates. */
export function liveFrameFor(
  rates: CurrentRates,
  tenants: readonly string[],
  services: readonly ServiceView[],
): LiveFrame {
  return {
    at: new Date(rates.at).toISOString(),
    tenants: tenants.map((name) => ({ name, ...(rates.tenants.get(name) ?? ZERO_RATE) })),
    services: services.map(({ uid, namespace, name, tenant }) => ({
      namespace,
      name,
      tenant,
      ...(rates.services.get(uid) ?? ZERO_RATE),
    })),
  };
}

/** The data of a `history` event of `/api/v1/live`. */
export interface LiveHistory {
  readonly tenants: readonly { readonly name: string; readonly points: readonly RatePoint[] }[];
}

/** Number of seconds that a tenant's graph on the page shows, with one frame per second. */
const HISTORY_SECONDS = 120;

/**
 * Yields the rates of the last two minutes, one item per tenant with traffic in that time. A generator, because all items of a thousand
 * tenants take megabytes.
 */
export function* liveHistoriesFor(history: RateHistory, tenants: readonly string[]): Generator<LiveHistory> {
  const recent = { ...history, frames: history.frames.slice(-HISTORY_SECONDS) };
  const active = new Set(recent.frames.flatMap((frame) => [...frame.tenants.keys()]));
  for (const name of tenants) {
    if (active.has(name)) yield { tenants: [{ name, points: ratePointsFor(recent, { kind: 'tenant', id: name }) }] };
  }
}

/**
 * Caches the text of the `rates` event: each text is rendered once per sample and scope, and all watchers with this scope get the same
 * text.
 */
export class RateEventCache {
  readonly #options: { readonly watch: FleetWatch; readonly clock: Clock };
  #history: RateHistory | undefined;
  readonly #textByScope = new Map<string, string | undefined>();

  constructor(options: { readonly watch: FleetWatch; readonly clock: Clock }) {
    this.#options = options;
  }

  /** Returns the text of the `rates` event, or undefined if there are no current rates. */
  eventFor(history: RateHistory, scope: AuthorizationScope): string | undefined {
    if (this.#history !== history) this.#textByScope.clear();
    this.#history = history;
    const key = scopeKey(scope);
    if (!this.#textByScope.has(key)) this.#textByScope.set(key, this.#render(history, scope));
    return this.#textByScope.get(key);
  }

  #render(history: RateHistory, scope: AuthorizationScope): string | undefined {
    const { watch, clock } = this.#options;
    const rates = currentRatesFor(history);
    if (rates === undefined) return undefined;
    const services = watch.views().filter(({ namespace }) => isNamespaceVisible(scope, namespace));
    const frame = liveFrameFor(rates, visibleTenantNames(scope, watch.fleet().table), services);
    return `event: rates\nid: ${clock.now()}\ndata: ${JSON.stringify(frame)}\n\n`;
  }
}
