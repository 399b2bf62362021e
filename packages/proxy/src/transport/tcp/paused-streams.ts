const PROBE_INTERVAL_MS = 1_000;

export interface Pausable {
  /** The book's own: where in it, -1: it is not watched. */
  watchedAt: number;
  /** Nothing is read from it at the moment, so a reset of its peer would not be noticed. */
  readonly isReadPaused: boolean;
  /** Ends the stream if its peer is gone. */
  probe(): void;
}

/**
 * Streams that were paused, looked at once a second: a peer that resets while nothing is read would hold its connection,
 * and that of the other side, until the idle timeout. Pausing and going on costs the streams no more than a flag: those that
 * read again are found out by the look. A list and no Set, for the reason that `Members` is none.
 */
export class PausedStreams {
  readonly #streams: Pausable[] = [];
  #timer: NodeJS.Timeout | undefined;

  watch(stream: Pausable): void {
    if (stream.watchedAt >= 0) return;
    stream.watchedAt = this.#streams.length;
    this.#streams.push(stream);
    this.#timer ??= setInterval(this.#probeAll, PROBE_INTERVAL_MS).unref();
  }

  /** Nothing happens when it is not watched. */
  forget(stream: Pausable): void {
    const at = stream.watchedAt;
    if (at < 0) return;
    stream.watchedAt = -1;
    const last = this.#streams.pop() as Pausable;
    if (last === stream) return;
    this.#streams[at] = last;
    last.watchedAt = at;
  }

  readonly #probeAll = (): void => {
    // From the end: who leaves is replaced by one that was looked at already.
    for (let at = this.#streams.length - 1; at >= 0; at -= 1) {
      const stream = this.#streams[at];
      if (stream?.isReadPaused) stream.probe();
      else if (stream !== undefined) this.forget(stream);
    }
    if (this.#streams.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };
}
