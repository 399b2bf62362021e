import { earliest } from '@weir/model';

/** Since when the store lacks something that the source says, milliseconds since the epoch; undefined: nothing, or not known. */
export class UnpublishedChange {
  #since: number | undefined;

  /** The source has changed, and the world did then. */
  add(changedAt: number | undefined): void {
    this.#since = earliest(this.#since, changedAt);
  }

  /** All that was added so far is about to be published; what cannot be is added again. */
  take(): number | undefined {
    const since = this.#since;
    this.#since = undefined;
    return since;
  }
}
