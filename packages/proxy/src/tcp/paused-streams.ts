const PERIOD_MS = 1_000;

export interface Pausable {
  /** The book's own. */
  isWatched: boolean;
  /** Nothing is read from it at the moment, so a reset of its peer would not be noticed. */
  readonly isDeaf: boolean;
  /** Ends the stream if its peer is gone. */
  probe(): void;
}

/**
 * Streams that were paused, looked at once a second: a peer that resets while nothing is read would hold its connection,
 * and that of the other side, until the idle timeout. Pausing and going on costs the streams no more than a flag: those that
 * read again are found out by the look.
 */
export class PausedStreams {
  readonly #streams = new Set<Pausable>();
  #timer: NodeJS.Timeout | undefined;

  watch(stream: Pausable): void {
    if (stream.isWatched) return;
    stream.isWatched = true;
    this.#streams.add(stream);
    this.#timer ??= setInterval(this.#look, PERIOD_MS).unref();
  }

  forget(stream: Pausable): void {
    stream.isWatched = false;
    this.#streams.delete(stream);
  }

  readonly #look = (): void => {
    for (const stream of this.#streams) {
      if (stream.isDeaf) stream.probe();
      else this.forget(stream);
    }
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };
}
