import { demandPerSecond } from '@weir/model';

/** How far back a demand is measured. */
const WINDOW_MS = 1_000;

/** Measures the demand of a simulated proxy from the samples of the last second. */
export class SimulatedDemand {
  readonly #samples: { readonly atMs: number; readonly counter: number }[] = [];

  /** Adds a sample and returns the demand per second. Call this method about every 50 ms. */
  add(atMs: number, counter: number): number {
    const samples = this.#samples;
    samples.push({ atMs, counter });
    while (samples[1] !== undefined && atMs - samples[1].atMs >= WINDOW_MS) samples.shift();
    return demandPerSecond(samples, ({ counter }) => counter);
  }
}
