import type { Clock } from '@weir/runtime';
import { type Sight, seesNamespace, sightKey, tenantNamesSeen } from '../access/sight.ts';
import type { FleetWatch } from '../fleet/fleet-watch.ts';
import type { RateHistory } from '../rates/history.ts';
import { liveFrameFor } from '../rates/live-frame.ts';
import { ratesFor } from '../rates/rates.ts';

/** The event `rates` of a sample: made once for all who see the same, however many watch. */
export class LiveTexts {
  readonly #parts: { readonly watch: FleetWatch; readonly clock: Clock };
  #history: RateHistory | undefined;
  readonly #made = new Map<string, string | undefined>();

  constructor(parts: { readonly watch: FleetWatch; readonly clock: Clock }) {
    this.#parts = parts;
  }

  /** Undefined while there is only one sample. */
  frame(history: RateHistory, sight: Sight): string | undefined {
    if (this.#history !== history) this.#made.clear();
    this.#history = history;
    const key = sightKey(sight);
    if (!this.#made.has(key)) this.#made.set(key, this.#make(history, sight));
    return this.#made.get(key);
  }

  #make(history: RateHistory, sight: Sight): string | undefined {
    const { watch, clock } = this.#parts;
    const rates = ratesFor(history);
    if (rates === undefined) return undefined;
    const services = watch.views().filter(({ namespace }) => seesNamespace(sight, namespace));
    const frame = liveFrameFor(rates, tenantNamesSeen(sight, watch.fleet().table), services);
    return `event: rates\nid: ${clock.now()}\ndata: ${JSON.stringify(frame)}\n\n`;
  }
}
