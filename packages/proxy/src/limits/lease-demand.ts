import { demandPerSecond, type LeasedResource, type ShareClaim } from '@weir/model/data-plane';
import type { RowDemand } from './limiter-registry.ts';

/** The time over which a rate is limited, and over which its demand is measured. */
export const RATE_WINDOW_MS = 1_000;
/**
 * The window over which a proxy measures bandwidth. The proxy claims bandwidth for clients that have left for at most
 * this time.
 */
const BANDWIDTH_WINDOW_MS = 200;
/** Samples that are closer together replace each other, so that their number is bounded. */
const MIN_SAMPLE_INTERVAL_MS = 40;
/** A bandwidth that is not used up may grow by a quarter between two exchanges. */
const BANDWIDTH_GROWTH = 1.25;

interface Sample {
  readonly at: number;
  readonly row: RowDemand;
}

/** The claim of a row to a limit, and how much of the limit the row uses. The use may exceed the present share. */
export interface ResourceDemand {
  readonly claim: ShareClaim;
  readonly used: number;
}

/** Measures what the clients of one row ask for. */
export class DemandWindow {
  /** Oldest first. The first sample is at least a second old once the window has existed for a second. */
  readonly #samples: Sample[] = [];

  /** Adds the current state of the row. `at` is in milliseconds of the monotonic clock. */
  add(row: RowDemand, at: number): void {
    const samples = this.#samples;
    const [last, previous] = [samples.at(-1), samples.at(-2)];
    if (last !== undefined && previous !== undefined && last.at - previous.at < MIN_SAMPLE_INTERVAL_MS) samples.pop();
    samples.push({ at, row });
    while (samples.length > 2 && at - (samples[1] as Sample).at >= RATE_WINDOW_MS) samples.shift();
  }

  /** Returns the demand for a limit. To be called after `add`. */
  demandFor(resource: LeasedResource, limit: number): ResourceDemand {
    const row = (this.#samples.at(-1) as Sample).row;
    switch (resource) {
      case 'connections':
        return {
          claim: { demand: row.open + this.#increase('refusedOpen'), weight: 1, floor: row.open, used: 0 },
          used: row.open,
        };
      case 'newConnectionsPerSecond':
        return this.#rateDemand('offeredNew', row.admittedNew);
      case 'requestsPerSecond':
        return this.#rateDemand('offeredRequests', row.admittedRequests);
      case 'inBitsPerSecond':
        return { claim: this.#bandwidthClaim('inBytes', 'waitingIn', limit), used: 0 };
      case 'outBitsPerSecond':
        return { claim: this.#bandwidthClaim('outBytes', 'waitingOut', limit), used: 0 };
    }
  }

  #rateDemand(counter: 'offeredNew' | 'offeredRequests', admittedInSecond: number): ResourceDemand {
    const demand = Math.ceil(
      demandPerSecond(this.#samples.map(({ at, row }) => ({ atMs: at, counter: row[counter] }))),
    );
    return { claim: { demand, weight: 1, floor: 0, used: admittedInSecond }, used: admittedInSecond };
  }

  /** Claims the whole limit while readers wait, in proportion to the number of readers. */
  #bandwidthClaim(bytes: 'inBytes' | 'outBytes', waiting: 'waitingIn' | 'waitingOut', limit: number): ShareClaim {
    const samples = this.#samplesOfBandwidth();
    const [first, last] = [samples[0] as Sample, samples.at(-1) as Sample];
    const readers = samples.reduce((sum, { row }) => sum + row[waiting], 0) / samples.length;
    const spanMs = Math.max(MIN_SAMPLE_INTERVAL_MS, last.at - first.at);
    const bitsPerSecond = ((last.row[bytes] - first.row[bytes]) * 8_000) / spanMs;
    return {
      demand: readers > 0 ? limit : Math.min(limit, Math.ceil(bitsPerSecond * BANDWIDTH_GROWTH)),
      weight: Math.max(1, Math.round(readers)),
      floor: 0,
      used: 0,
    };
  }

  #increase(counter: 'refusedOpen'): number {
    const [first, last] = [this.#samples[0] as Sample, this.#samples.at(-1) as Sample];
    return last.row[counter] - first.row[counter];
  }

  /** Returns the samples of the last `BANDWIDTH_WINDOW_MS`, and the sample before them. */
  #samplesOfBandwidth(): readonly Sample[] {
    const newestAt = (this.#samples.at(-1) as Sample).at;
    const first = this.#samples.findLastIndex(({ at }) => newestAt - at >= BANDWIDTH_WINDOW_MS);
    return this.#samples.slice(Math.max(0, first));
  }
}
