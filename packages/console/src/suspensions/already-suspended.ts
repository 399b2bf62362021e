import { ApiError } from '../api/api-error.ts';

/** There is a Suspension of this name, which nobody asked to replace. */
export function alreadySuspendedError(name: string, why: string, options: { readonly cause?: unknown } = {}): ApiError {
  const message = `Suspension "${name}" is there already, ${why}; replace it by \`weir suspend --replace\` (?replace=true), or lift it first`;
  return new ApiError('AlreadySuspended', message, options);
}
