const PROBE_INTERVAL_MS = 1_000;

export interface Pausable {
  /**
   * The index of the stream in `PausedStreams`, or -1 if the stream is not watched. Only `PausedStreams` sets this
   * field.
   */
  watchedAt: number;
  /** Whether nothing is read from the stream at present. A reset by the peer would then go unnoticed. */
  readonly isReadPaused: boolean;
  /** Closes the stream if the peer has reset the connection. */
  probe(): void;
}

/**
 * Probes paused streams every second. Without probes, if a peer resets a connection that is not being read, both
 * connections of the session would stay open until the idle timeout. Resuming a stream does not remove it from the
 * list; the next probe does. An array, with the index stored in each stream, is cheaper than a Set.
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

  /** Stops watching the stream. Does nothing if the stream is not watched. */
  forget(stream: Pausable): void {
    const index = stream.watchedAt;
    if (index < 0) return;
    stream.watchedAt = -1;
    const last = this.#streams.pop() as Pausable;
    if (last === stream) return;
    this.#streams[index] = last;
    last.watchedAt = index;
  }

  readonly #probeAll = (): void => {
    // Iterates backwards, because `forget` moves the last stream into the gap, and the last stream has been probed
    // already.
    for (let index = this.#streams.length - 1; index >= 0; index -= 1) {
      const stream = this.#streams[index];
      if (stream?.isReadPaused) stream.probe();
      else if (stream !== undefined) this.forget(stream);
    }
    if (this.#streams.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };
}
