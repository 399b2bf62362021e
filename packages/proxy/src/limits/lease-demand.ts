import { demandPerSecond, type LeasedResource, type ShareClaim, type TimedSample } from '@weir/model/data-plane';
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

/** The state of a row at `atMs` of the monotonic clock. */
interface Sample extends TimedSample, RowDemand {}

/** The claim of a row to a limit, and how much of the limit the row uses. The use may exceed the present share. */
export interface ResourceDemand {
  readonly claim: ShareClaim;
  readonly used: number;
}

/** Measures what the clients of one row ask for. */
export class DemandWindow {
  /** Oldest first. The first sample is at least a second old once the window has existed for a second. */
  readonly #samples: Sample[] = [];
  /** A lower bound of how many consecutive samples, up to the newest, have the same state. Includes expired samples. */
  #minEqualSamples = 0;
  /** The last result of `demandFor` for each resource. Kept only while all samples are equal. */
  readonly #demands = new Map<LeasedResource, { readonly limit: number; readonly demand: ResourceDemand }>();

  /** Adds the current state of the row. `atMs` is in milliseconds of the monotonic clock. */
  add(row: RowDemand, atMs: number): void {
    const samples = this.#samples;
    const wereSamplesEqual = this.#areSamplesEqual;
    const [last, previous] = [samples.at(-1), samples.at(-2)];
    const hasStateChanged = last === undefined || !isSameState(last, row);
    if (last !== undefined && previous !== undefined && last.atMs - previous.atMs < MIN_SAMPLE_INTERVAL_MS) {
      samples.pop();
      this.#minEqualSamples -= 1;
    }
    this.#minEqualSamples = hasStateChanged ? 1 : this.#minEqualSamples + 1;
    let expired: Sample | undefined;
    while (samples.length > 1 && atMs - (samples[1] as Sample).atMs >= RATE_WINDOW_MS) expired = samples.shift();
    // Overwrites an expired sample, because new objects that live for a second are expensive to collect.
    samples.push(expired === undefined ? { ...row, atMs } : Object.assign(expired, row, { atMs }));
    // While all samples are equal, their times do not affect any demand.
    const isUnchanged = wereSamplesEqual && this.#areSamplesEqual;
    if (!isUnchanged) this.#demands.clear();
  }

  /**
   * Returns the demand for a limit. Returns the same object while all samples and `limit` stay the same. To be called after
   * `add`.
   */
  demandFor(resource: LeasedResource, limit: number): ResourceDemand {
    const known = this.#demands.get(resource);
    if (known?.limit === limit) return known.demand;
    const demand = this.#measuredDemand(resource, limit);
    this.#demands.set(resource, { limit, demand });
    return demand;
  }

  /** Ignores the times of the samples. */
  get #areSamplesEqual(): boolean {
    return this.#minEqualSamples >= this.#samples.length;
  }

  #measuredDemand(resource: LeasedResource, limit: number): ResourceDemand {
    const row = this.#samples.at(-1) as Sample;
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
    const demand = Math.ceil(demandPerSecond(this.#samples, (sample) => sample[counter]));
    return { claim: { demand, weight: 1, floor: 0, used: admittedInSecond }, used: admittedInSecond };
  }

  /** Claims the whole limit while readers wait, in proportion to the number of readers. */
  #bandwidthClaim(bytes: 'inBytes' | 'outBytes', waiting: 'waitingIn' | 'waitingOut', limit: number): ShareClaim {
    const samples = this.#samplesOfBandwidth();
    const [first, last] = [samples[0] as Sample, samples.at(-1) as Sample];
    const readers = samples.reduce((sum, sample) => sum + sample[waiting], 0) / samples.length;
    const spanMs = Math.max(MIN_SAMPLE_INTERVAL_MS, last.atMs - first.atMs);
    const bitsPerSecond = ((last[bytes] - first[bytes]) * 8_000) / spanMs;
    return {
      demand: readers > 0 ? limit : Math.min(limit, Math.ceil(bitsPerSecond * BANDWIDTH_GROWTH)),
      weight: Math.max(1, Math.round(readers)),
      floor: 0,
      used: 0,
    };
  }

  #increase(counter: 'refusedOpen'): number {
    const [first, last] = [this.#samples[0] as Sample, this.#samples.at(-1) as Sample];
    return last[counter] - first[counter];
  }

  /** Returns the samples of the last `BANDWIDTH_WINDOW_MS`, and the sample before them. */
  #samplesOfBandwidth(): readonly Sample[] {
    const newestAtMs = (this.#samples.at(-1) as Sample).atMs;
    const first = this.#samples.findLastIndex(({ atMs }) => newestAtMs - atMs >= BANDWIDTH_WINDOW_MS);
    return this.#samples.slice(Math.max(0, first));
  }
}

function isSameState(sample: Sample, row: RowDemand): boolean {
  return (Object.keys(row) as (keyof RowDemand)[]).every((field) => sample[field] === row[field]);
}
