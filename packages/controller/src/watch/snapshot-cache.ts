import type { SourceSnapshot } from './source.ts';

/** The snapshot of a source, built on demand after each change, and the listeners for its changes. */
export class SnapshotCache {
  readonly #build: () => SourceSnapshot;
  readonly #listeners = new Set<(changedAt?: number) => void>();
  #snapshot: SourceSnapshot | undefined;

  constructor(build: () => SourceSnapshot) {
    this.#build = build;
  }

  get(): SourceSnapshot {
    this.#snapshot ??= this.#build();
    return this.#snapshot;
  }

  /** Discards the snapshot and calls the listeners. `changedAt` as in `Source.onChange`. */
  invalidate(changedAt?: number): void {
    this.#snapshot = undefined;
    for (const listener of this.#listeners) listener(changedAt);
  }

  onChange(listener: (changedAt?: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.#listeners.clear();
  }
}
