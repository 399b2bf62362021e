import type { Suspension, SuspensionTarget } from '@weir/model';
import { ApiError } from '../api/api-error.ts';

export interface SuspensionRequest {
  readonly target: SuspensionTarget;
  /** Shown to the tenant. */
  readonly message: string;
  /** Milliseconds since the epoch; null for no end. */
  readonly until: number | null;
  /** The user's name; null without authentication. */
  readonly requestedBy: string | null;
  /** Whether the request replaces an existing Suspension of another user, or one that lasts longer. */
  readonly replace: boolean;
}

export interface SuspensionWriter {
  /**
   * Resolves when the Suspension is in force. An existing Suspension of the same user and target gets the new message and end. Rejects with
   * `ApiError` AlreadySuspended if another user created the existing Suspension, unless `replace` is true.
   */
  suspend(request: SuspensionRequest): Promise<Suspension>;
  /** Deletes a Suspension that did not come from a file. Rejects with `ApiError` if the Suspension would come back. */
  resume(suspension: Suspension): Promise<void>;
}

/** The error if a Suspension exists and the request does not replace it. */
export function alreadySuspendedError(
  name: string,
  reason: string,
  options: { readonly cause?: unknown } = {},
): ApiError {
  const message = `Suspension "${name}" already exists ${reason}; replace it with \`weir suspend --replace\` (?replace=true), or delete it first with \`weir resume\``;
  return new ApiError('AlreadySuspended', message, options);
}
