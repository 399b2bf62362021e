import type { Snapshot, Suspension, SuspensionOrigin } from '@weir/model';
import type { FallbackKind } from '../snapshot/fallback-objects.ts';

/** What a source knows: a snapshot but for the fleet's settings, which are configuration. */
export interface SourceSnapshot extends Omit<Snapshot, 'settings'> {
  /** Kinds that were never read, for want of a right; their lists are empty. Absent: none. */
  readonly unreadableKinds?: ReadonlySet<FallbackKind>;
}

/** Where the objects come from: an API server, or files. It caches; whoever is told of a change reads the whole snapshot. */
export interface Source {
  readonly kind: 'kubernetes' | 'directory';
  /** Resolves once everything there is has been read; rejects when `signal` aborts, or when it can never be. */
  synced(signal: AbortSignal): Promise<void>;
  /**
   * Resolves once the snapshot is at least as new as anything that somebody else may have seen before this call, whenever it was read
   * last: whoever leads anew must not take back what the last leader decided from newer objects. It may be called before `synced`,
   * and does not stand in for it. Absent where nothing is ever behind.
   */
  refresh?(signal: AbortSignal): Promise<void>;
  snapshot(): SourceSnapshot;
  /**
   * Told that the snapshot is another one, and since when the world has been so (milliseconds since the epoch; undefined: not
   * known, as of all that was there before us); returns the way to stop.
   */
  onChange(listener: (changedAt?: number) => void): () => void;
  /** Where a Suspension must be deleted. */
  originOf(suspension: { readonly uid: string }): SuspensionOrigin;
  /**
   * Whether a Suspension that is not in the snapshot is known to be deleted. Absence alone is no proof: a file may be unreadable, a
   * watch may have missed something. True is final, false means "not yet". It may take as long as the API server takes, or `signal`.
   */
  isDeleted(cutoff: Suspension, signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}
