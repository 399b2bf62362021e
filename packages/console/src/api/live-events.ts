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

/** One event of `/api/v1/live`. */
export interface LiveFrame {
  /** RFC 3339. */
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

/** Every tenant and Service that there is, also those at rest, sorted by name. */
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

/** The data of an event `history` of `/api/v1/live`. */
export interface LiveHistory {
  readonly tenants: readonly { readonly name: string; readonly points: readonly RatePoint[] }[];
}

/** What a small graph shows. */
const HISTORY_SECONDS = 120;

/**
 * The last two minutes of those who moved something in them, made one by one as they are taken: of a thousand tenants it is
 * megabytes. Empty when nobody did.
 */
export function* liveHistoriesFor(history: RateHistory, tenants: readonly string[]): Generator<LiveHistory> {
  const recent = { ...history, frames: history.frames.slice(-HISTORY_SECONDS) };
  const moved = new Set(recent.frames.flatMap((frame) => [...frame.tenants.keys()]));
  for (const name of tenants) {
    if (moved.has(name)) yield { tenants: [{ name, points: ratePointsFor(recent, { kind: 'tenant', id: name }) }] };
  }
}

/** The event `rates` of a sample: made once for all who see the same, however many watch. */
export class RateEventCache {
  readonly #options: { readonly watch: FleetWatch; readonly clock: Clock };
  #history: RateHistory | undefined;
  readonly #textByScope = new Map<string, string | undefined>();

  constructor(parts: { readonly watch: FleetWatch; readonly clock: Clock }) {
    this.#options = parts;
  }

  /** Undefined while there is only one sample. */
  eventFor(history: RateHistory, sight: AuthorizationScope): string | undefined {
    if (this.#history !== history) this.#textByScope.clear();
    this.#history = history;
    const key = scopeKey(sight);
    if (!this.#textByScope.has(key)) this.#textByScope.set(key, this.#render(history, sight));
    return this.#textByScope.get(key);
  }

  #render(history: RateHistory, sight: AuthorizationScope): string | undefined {
    const { watch, clock } = this.#options;
    const rates = currentRatesFor(history);
    if (rates === undefined) return undefined;
    const services = watch.views().filter(({ namespace }) => isNamespaceVisible(sight, namespace));
    const frame = liveFrameFor(rates, visibleTenantNames(sight, watch.fleet().table), services);
    return `event: rates\nid: ${clock.now()}\ndata: ${JSON.stringify(frame)}\n\n`;
  }
}
