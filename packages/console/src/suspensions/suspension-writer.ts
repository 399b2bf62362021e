import type { Suspension, SuspensionTarget } from '@weir/model';
import type { SuspensionRelease } from '@weir/store';
import { ApiError } from '../api/api-error.ts';

export interface SuspensionRequest {
  readonly target: SuspensionTarget;
  /** The message that the tenant sees. */
  readonly message: string;
  /** End of the Suspension in milliseconds since the epoch, or null if the Suspension has no end. */
  readonly until: number | null;
  /** The user's name. Null without authentication. */
  readonly requestedBy: string | null;
  /** Whether the request may replace a Suspension that another user made, or a Suspension that ends later than the request. */
  readonly replace: boolean;
}

export interface SuspensionWriter {
  /**
   * Creates a Suspension, and resolves after it was written to the store. If the user has already suspended this target, changes the
   * message and the end of that Suspension. Rejects with `ApiError` AlreadySuspended if another user created or may have created the
   * existing Suspension, unless `replace` is true.
   */
  suspend(request: SuspensionRequest): Promise<Suspension>;
  /**
   * Deletes a Suspension. The Suspension must not be defined in a file. Rejects with `ApiError` if the Suspension object in Kubernetes
   * cannot be deleted. `requestedBy` is the user's name for the audit trail; null without authentication.
   */
  resume(suspension: Suspension, requestedBy: string | null): Promise<void>;
}

/** Returns the error for a request that must not replace an existing Suspension. */
export function alreadySuspendedError(
  name: string,
  reason: string,
  options: { readonly cause?: unknown } = {},
): ApiError {
  const message = `Suspension "${name}" already exists ${reason}; replace it with \`weir suspend --replace\` (?replace=true), or delete it first with \`weir resume\``;
  return new ApiError('AlreadySuspended', message, options);
}

/** Returns the release of a suspension that a user resumed, for the audit trail. */
export function releaseBy(requestedBy: string | null, suspension: Suspension): SuspensionRelease {
  return { suspension, why: 'resumed', by: requestedBy ?? 'an unknown user' };
}
