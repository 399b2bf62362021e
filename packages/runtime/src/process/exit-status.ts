import { ConfigError } from '../config/parse-config.ts';
import { errorMessage, UsageError } from '../errors.ts';

/**
 * Returns the exit code and message for an error that ends a process. The code is 2 if the user must correct the
 * configuration or the command line, otherwise 1.
 */
export function exitStatusFor(error: unknown): { readonly code: 1 | 2; readonly message: string } {
  if (error instanceof ConfigError && error.mistakes.length > 1) {
    return { code: 2, message: `invalid configuration:\n  ${error.message.replaceAll('\n', '\n  ')}` };
  }
  return { code: isUsageError(error) ? 2 : 1, message: errorMessage(error) };
}

export function isUsageError(error: unknown): error is ConfigError | UsageError {
  return error instanceof ConfigError || error instanceof UsageError;
}
