import type { LeasedResource, ShareClaim } from '@weir/model/data-plane';
import type { RowDemand } from './limiter-registry.ts';

/** Demand is measured over the last second. */
const WINDOW_MS = 1_000;
/** Samples that are closer together would make a few units look like a high rate. */
const MIN_SAMPLE_INTERVAL_MS = 50;
/** A bandwidth that is not used up may grow by a quarter between two exchanges. */
const BANDWIDTH_GROWTH = 1.25;

interface Sample {
  readonly at: number;
  readonly row: RowDemand;
}

/** What a row needs of a limit, and what it uses of the limit although its share may be lower. */
export interface ResourceDemand {
  readonly claim: ShareClaim;
  readonly used: number;
}

/** Measures what the clients of one row ask for. */
export class DemandWindow {
  /** The oldest sample is at least a second old, if the window is. */
  readonly #samples: Sample[] = [];

  /** Adds the current state of the row. `at` is in milliseconds of the monotonic clock. */
  add(row: RowDemand, at: number): void {
    const samples = this.#samples;
    const [last, previous] = [samples.at(-1), samples.at(-2)];
    if (last !== undefined && previous !== undefined && last.at - previous.at < MIN_SAMPLE_INTERVAL_MS) samples.pop();
    samples.push({ at, row });
    while (samples.length > 2 && at - (samples[1] as Sample).at >= WINDOW_MS) samples.shift();
  }

  /** Returns the demand for a limit. To be called after `add`. */
  demandFor(resource: LeasedResource, limit: number): ResourceDemand {
    const row = (this.#samples.at(-1) as Sample).row;
    switch (resource) {
      case 'connections':
        return {
          claim: { demand: row.open + this.#increase('refusedOpen'), weight: 1, floor: row.open },
          used: row.open,
        };
      case 'newConnectionsPerSecond':
        return { claim: { demand: this.#ratePerSecond('offeredNew'), weight: 1, floor: 0 }, used: row.admittedNew };
      case 'requestsPerSecond':
        return {
          claim: { demand: this.#ratePerSecond('offeredRequests'), weight: 1, floor: 0 },
          used: row.admittedRequests,
        };
      case 'inBitsPerSecond':
        return { claim: this.#bandwidthClaim('inBytes', 'waitingIn', limit), used: 0 };
      case 'outBitsPerSecond':
        return { claim: this.#bandwidthClaim('outBytes', 'waitingOut', limit), used: 0 };
    }
  }

  /**
   * Returns the mean rate of the window. Returns the rate of the last sample if the rate has changed since: if the last
   * sample differs from the mean by more than three standard deviations of a Poisson process.
   */
  #ratePerSecond(counter: 'offeredNew' | 'offeredRequests'): number {
    const last = this.#samples.at(-1) as Sample;
    const previous = this.#samples.findLast(({ at }) => last.at - at >= MIN_SAMPLE_INTERVAL_MS);
    if (previous === undefined) return 0;
    const mean = (this.#increase(counter) / this.#spanMs) * 1_000;
    const sampleMs = last.at - previous.at;
    const units = last.row[counter] - previous.row[counter];
    const expected = (mean * sampleMs) / 1_000;
    const hasChanged = Math.abs(units - expected) > 3 * Math.sqrt(Math.max(1, expected));
    return Math.ceil(hasChanged ? (units / sampleMs) * 1_000 : mean);
  }

  /** Claims the whole limit while readers wait, in proportion to the number of readers. */
  #bandwidthClaim(bytes: 'inBytes' | 'outBytes', waiting: 'waitingIn' | 'waitingOut', limit: number): ShareClaim {
    const readers = this.#samples.reduce((sum, { row }) => sum + row[waiting], 0) / this.#samples.length;
    const bitsPerSecond = (this.#increase(bytes) * 8_000) / this.#spanMs;
    return {
      demand: readers > 0 ? limit : Math.min(limit, Math.ceil(bitsPerSecond * BANDWIDTH_GROWTH)),
      weight: Math.max(1, Math.round(readers)),
      floor: 0,
    };
  }

  #increase(counter: 'refusedOpen' | 'offeredNew' | 'offeredRequests' | 'inBytes' | 'outBytes'): number {
    const [first, last] = [this.#samples[0] as Sample, this.#samples.at(-1) as Sample];
    return last.row[counter] - first.row[counter];
  }

  get #spanMs(): number {
    const [first, last] = [this.#samples[0] as Sample, this.#samples.at(-1) as Sample];
    return Math.max(MIN_SAMPLE_INTERVAL_MS, last.at - first.at);
  }
}
