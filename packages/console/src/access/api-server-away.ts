import { errorMessage } from '@weir/runtime';
import { ApiError } from '../api/api-error.ts';
import type { ApiResponse } from '../kubernetes/api-connection.ts';

/** The API server did not say `what`. */
export function reviewUnavailableError(what: string, error: unknown): ApiError {
  const message = `the API server does not say ${what} (${errorMessage(error)}); try again once it answers`;
  return new ApiError('KubernetesAway', message, { cause: error });
}

/** The API server answers, but not the question: mostly a right of the console that is missing. */
export function reviewRefusedError(resource: string, { status, body }: ApiResponse): ApiError {
  const said = (body as { readonly message?: unknown } | undefined)?.message;
  const why = typeof said === 'string' ? `: ${said}` : '';
  const todo = status === 403 ? `; grant the console create of ${resource}` : '; try again';
  return new ApiError('KubernetesAway', `the API server does not check the request (HTTP ${status}${why})${todo}`);
}
