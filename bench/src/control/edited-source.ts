import type { Source, SourceSnapshot } from '@weir/controller';
import type { CutoffOrigin } from '@weir/model';

/** In the place of an API server, which takes minutes to be filled: it holds what it is given. */
export class EditedSource implements Source {
  readonly kind = 'kubernetes';
  #snapshot: SourceSnapshot;
  readonly #listeners = new Set<(changedAt?: number) => void>();

  constructor(snapshot: SourceSnapshot) {
    this.#snapshot = snapshot;
  }

  /** `changedAt`: as in `Source`. */
  set(snapshot: SourceSnapshot, changedAt?: number): void {
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

  originOf(): CutoffOrigin {
    return { kind: 'kubernetes' };
  }

  async isDeleted(): Promise<boolean> {
    return false;
  }

  async close(): Promise<void> {}
}
