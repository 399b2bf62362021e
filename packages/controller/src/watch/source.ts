import type { Snapshot, Suspension, SuspensionOrigin } from '@weir/model';
import type { FallbackKind } from '../snapshot/fallback-objects.ts';

/** A snapshot without the fleet's settings, because the settings are configuration. */
export interface SourceSnapshot extends Omit<Snapshot, 'settings'> {
  /** Kinds that were never read because a permission is missing; their lists are empty. Absent if there are no such kinds. */
  readonly unreadableKinds?: ReadonlySet<FallbackKind>;
}

/** Reads and caches objects from an API server or from files. Listeners read the complete snapshot after a change. */
export interface Source {
  readonly kind: 'kubernetes' | 'directory';
  /** Resolves once all objects have been read. Rejects when `signal` aborts. */
  synced(signal: AbortSignal): Promise<void>;
  /**
   * Resolves once the snapshot is at least as new as any object that another process read before this call. Otherwise a new leader
   * could revert decisions that the previous leader made from newer objects. May be called before `synced`, but does not replace
   * `synced`. Absent if the source is never behind.
   */
  refresh?(signal: AbortSignal): Promise<void>;
  snapshot(): SourceSnapshot;
  /**
   * Calls `listener` when the snapshot has changed. `changedAt` is when the objects changed, in milliseconds since the epoch;
   * undefined if the time is unknown, as for objects that existed before this process. Returns a function that removes the listener.
   */
  onChange(listener: (changedAt?: number) => void): () => void;
  /** Returns where the Suspension is stored and an operator can delete it: in the API server, in a file, or in the store. */
  originOf(suspension: { readonly uid: string }): SuspensionOrigin;
  /**
   * Whether a Suspension that is missing from the snapshot is known to be deleted. Absence does not prove the deletion, because a file may
   * be unreadable or a watch may have missed an event. True is final; false means "not known yet". May send a request to the API server;
   * `signal` aborts the request.
   */
  isDeleted(suspension: Suspension, signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

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
