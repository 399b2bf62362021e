import type { Lane } from './lane.ts';
import type { Meter, Waiter } from './meter.ts';

/** Of a stream that has read nothing yet. */
const FIRST_READ = 16_384;

/** The reading of one stream whose bytes per second are limited. Nothing is dropped: whoever is too fast is not read. */
export class Throttle implements Waiter {
  lastBytes: number = FIRST_READ;
  since = 0n;
  readonly #lane: Lane;
  readonly #goOn: () => void;
  #waitsFor: Meter | undefined;
  #isOver = false;

  /** `goOn` is called when its turn has come. It must not throw. */
  constructor(lane: Lane, goOn: () => void) {
    this.#lane = lane;
    this.#goOn = goOn;
  }

  /** It must not read now; `goOn` follows. */
  get isHeld(): boolean {
    return this.#waitsFor !== undefined;
  }

  /** So many bytes were read, or none yet. False: it is held from now on. */
  pass(bytes: number): boolean {
    const lane = this.#lane;
    if (bytes > 0) {
      this.lastBytes = bytes;
      if (!lane.owe(bytes) && !this.isHeld) return true;
    }
    const now = lane.now();
    lane.pay(now);
    // Already held: a read that was under way when it was stopped.
    if (this.isHeld) return false;
    this.#waitFor(lane.busy(now), now);
    return !this.isHeld;
  }

  /** Its turn at one meter has come. */
  onServed(meter: Meter, now: bigint): void {
    this.#waitsFor = undefined;
    if (this.#isOver) return;
    this.#waitFor(this.#lane.busyAfter(meter, now), now);
    if (!this.isHeld) this.#goOn();
  }

  /** The stream is over. */
  end(): void {
    this.#isOver = true;
    this.#waitsFor?.forget(this);
    this.#waitsFor = undefined;
  }

  #waitFor(meter: Meter | undefined, now: bigint): void {
    this.#waitsFor = meter;
    meter?.hold(this, now);
  }
}
