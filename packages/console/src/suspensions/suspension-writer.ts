import type { Suspension, SuspensionTarget } from '@weir/model';
import { ApiError } from '../api/api-error.ts';

export interface SuspensionRequest {
  readonly target: SuspensionTarget;
  /** Shown to the tenant. */
  readonly message: string;
  /** Milliseconds since the epoch; null: until somebody resumes. */
  readonly until: number | null;
  /** Who asks; null: nobody was asked who they are. */
  readonly requestedBy: string | null;
  /** Whether it takes the place of one that is there, whoever made that, and however long it would last. */
  readonly replace: boolean;
}

/** Where the console writes what a person asks for. */
export interface SuspensionWriter {
  /**
   * In force when it resolves. Whoever made the one that is there for the same target changes its message and end; of another's it
   * rejects with `ApiError` AlreadySuspended, unless asked to replace it.
   */
  suspend(request: SuspensionRequest): Promise<Suspension>;
  /** Lifts one that did not come from a file; rejects with `ApiError` when it would not stay lifted. */
  resume(cutoff: Suspension): Promise<void>;
}

/** There is a Suspension of this name, which nobody asked to replace. */
export function alreadySuspendedError(name: string, why: string, options: { readonly cause?: unknown } = {}): ApiError {
  const message = `Suspension "${name}" is there already, ${why}; replace it by \`weir suspend --replace\` (?replace=true), or lift it first`;
  return new ApiError('AlreadySuspended', message, options);
}
