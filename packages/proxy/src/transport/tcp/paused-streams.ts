const PROBE_INTERVAL_MS = 1_000;

export interface Pausable {
  /** Index in `PausedStreams`, which alone sets it; -1 if not watched. */
  watchedAt: number;
  /** Whether the stream is not being read, so that a reset by its peer would go unnoticed. */
  readonly isReadPaused: boolean;
  /** Ends the stream if its peer has reset. */
  probe(): void;
}

/**
 * Probes paused streams every second: if a peer resets while its stream is not read, the connections on both sides
 * would stay open until the idle timeout. Pausing and resuming sets only a flag; the next probe drops streams that read
 * again. An array with indexes in the streams is cheaper than a Set.
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

  /** Stops watching the stream. Has no effect if it is not watched. */
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
    // Backwards, because a removed stream is replaced by the last one, which has been probed already.
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
