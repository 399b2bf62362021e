import type { Clock } from '@weir/runtime';
import { type AuthorizationScope, isNamespaceVisible, scopeKey, visibleTenantNames } from '../access/sight.ts';
import type { FleetWatch } from '../fleet/fleet-watch.ts';
import type { RateHistory } from '../rates/history.ts';
import { liveFrameFor } from '../rates/live-frame.ts';
import { currentRatesFor } from '../rates/rates.ts';

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
