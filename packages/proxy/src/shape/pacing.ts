import type { Direction } from '../admit/limit-sheet.ts';
import type { Lane } from './lane.ts';
import type { Lanes } from './shaper.ts';
import { Throttle } from './throttle.ts';

export interface PacedReader {
  /** A side that had to wait may be read. Must not throw. */
  onTurn(direction: Direction): void;
}

/** Whether the two sides of a connection may be read, as far as bytes per second go. Costs two comparisons where no limit is. */
export class Pacing {
  readonly #lanes: Lanes;
  readonly #reader: PacedReader;
  #in: Throttle | undefined;
  #out: Throttle | undefined;

  constructor(lanes: Lanes, reader: PacedReader) {
    this.#lanes = lanes;
    this.#reader = reader;
  }

  /** `bytes` were read of the client, or, on their way out, of the endpoint; 0: none. False: it must wait for `onTurn`. */
  mayRead(direction: Direction, bytes: number): boolean {
    const throttle = direction === 'out' ? this.#out : this.#in;
    const lane = this.#laneOf(direction);
    if (lane.isLimited) return (throttle ?? this.#throttle(direction)).pass(bytes);
    return throttle === undefined || !throttle.isHeld;
  }

  /** How much may be read at a time; Infinity: as much as there is. */
  slice(direction: Direction): number {
    return this.#laneOf(direction).slice;
  }

  /** It does nothing because it may not yet. */
  get isHolding(): boolean {
    return isWaiting(this.#in, this.#lanes.in) || isWaiting(this.#out, this.#lanes.out);
  }

  end(): void {
    this.#in?.end();
    this.#out?.end();
  }

  /** By two names and not by one that varies, for which V8 looks into a hash table for every chunk. */
  #laneOf(direction: Direction): Lane {
    return direction === 'out' ? this.#lanes.out : this.#lanes.in;
  }

  #throttle(direction: Direction): Throttle {
    const throttle = new Throttle(this.#laneOf(direction), () => this.#reader.onTurn(direction));
    if (direction === 'out') this.#out = throttle;
    else this.#in = throttle;
    return throttle;
  }
}

/** For a turn that will come. Where none will, it is idle: its client may be gone, which only reading would show. */
function isWaiting(throttle: Throttle | undefined, lane: Lane): boolean {
  return throttle?.isHeld === true && !lane.isShut;
}
