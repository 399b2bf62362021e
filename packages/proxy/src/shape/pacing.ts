import type { Direction } from '../admit/limit-sheet.ts';
import type { BandwidthLimiter } from './lane.ts';
import type { BandwidthLimiters } from './shaper.ts';
import { ReadThrottle } from './throttle.ts';

export interface ThrottledReader {
  /** A side that had to wait may be read. Must not throw. */
  onReadAllowed(direction: Direction): void;
}

/** Whether the two sides of a connection may be read, as far as bytes per second go. Costs two comparisons where no limit is. */
export class SessionThrottle {
  readonly #limiters: BandwidthLimiters;
  readonly #reader: ThrottledReader;
  #in: ReadThrottle | undefined;
  #out: ReadThrottle | undefined;

  constructor(lanes: BandwidthLimiters, reader: ThrottledReader) {
    this.#limiters = lanes;
    this.#reader = reader;
  }

  /** `bytes` were read of the client, or, on their way out, of the endpoint; 0: none. False: it must wait for `onTurn`. */
  mayRead(direction: Direction, bytes: number): boolean {
    const throttle = direction === 'out' ? this.#out : this.#in;
    const lane = this.#limiterOf(direction);
    if (lane.isLimited) return (throttle ?? this.#createThrottle(direction)).mayReadAfter(bytes);
    return throttle === undefined || !throttle.isWaiting;
  }

  /** How much may be read at a time; Infinity: as much as there is. */
  quantumBytes(direction: Direction): number {
    return this.#limiterOf(direction).quantumBytes;
  }

  /** It does nothing because it may not yet. */
  get isThrottled(): boolean {
    return isWaiting(this.#in, this.#limiters.in) || isWaiting(this.#out, this.#limiters.out);
  }

  end(): void {
    this.#in?.end();
    this.#out?.end();
  }

  /** By two names and not by one that varies, for which V8 looks into a hash table for every chunk. */
  #limiterOf(direction: Direction): BandwidthLimiter {
    return direction === 'out' ? this.#limiters.out : this.#limiters.in;
  }

  #createThrottle(direction: Direction): ReadThrottle {
    const throttle = new ReadThrottle(this.#limiterOf(direction), () => this.#reader.onReadAllowed(direction));
    if (direction === 'out') this.#out = throttle;
    else this.#in = throttle;
    return throttle;
  }
}

/** For a turn that will come. Where none will, it is idle: its client may be gone, which only reading would show. */
function isWaiting(throttle: ReadThrottle | undefined, lane: BandwidthLimiter): boolean {
  return throttle?.isWaiting === true && !lane.isBlocked;
}
