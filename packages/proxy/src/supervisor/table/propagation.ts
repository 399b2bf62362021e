import { propagationSeconds } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';

/** Measures how long each change takes from the Kubernetes API to all workers of this proxy. */
export class PropagationLatency {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #listeners = new Set<(seconds: number) => void>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  onSample(listener: (seconds: number) => void): void {
    this.#listeners.add(listener);
  }

  /** To be called when all workers have applied a change made at `changedAt` (milliseconds since the epoch). */
  record(changedAt: number): void {
    const seconds = propagationSeconds(changedAt, this.#clock.now());
    for (const listener of this.#listeners) listener(seconds);
  }
}
