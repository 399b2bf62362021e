import { ConfigError } from '../config/parse-config.ts';
import { errorMessage, UsageError } from '../errors.ts';

/** How a process ends because of an error: 2 when the one who started it has to change something, else 1. */
export function exitStatusFor(error: unknown): { readonly code: 1 | 2; readonly message: string } {
  if (error instanceof ConfigError && error.mistakes.length > 1) {
    return { code: 2, message: `the configuration is wrong\n  ${error.message.replaceAll('\n', '\n  ')}` };
  }
  return { code: isUsageError(error) ? 2 : 1, message: errorMessage(error) };
}

export function isUsageError(error: unknown): error is ConfigError | UsageError {
  return error instanceof ConfigError || error instanceof UsageError;
}
