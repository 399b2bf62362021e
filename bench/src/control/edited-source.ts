import type { Source, SourceSnapshot } from '@weir/controller';
import type { SuspensionOrigin } from '@weir/model';

/** In the place of an API server, which takes minutes to be filled: it holds what it is given. */
export class InMemorySource implements Source {
  readonly kind = 'kubernetes';
  #snapshot: SourceSnapshot;
  readonly #listeners = new Set<(changedAt?: number) => void>();

  constructor(snapshot: SourceSnapshot) {
    this.#snapshot = snapshot;
  }

  /** `changedAt`: as in `Source`. */
  replace(snapshot: SourceSnapshot, changedAt?: number): void {
    this.#snapshot = snapshot;
    for (const listener of this.#listeners) listener(changedAt);
  }

  async synced(): Promise<void> {}

  snapshot(): SourceSnapshot {
    return this.#snapshot;
  }

  onChange(listener: (changedAt?: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  originOf(): SuspensionOrigin {
    return { kind: 'kubernetes' };
  }

  async isDeleted(): Promise<boolean> {
    return false;
  }

  async close(): Promise<void> {}
}
