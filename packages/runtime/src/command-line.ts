// The part of this package that every command of `weir` loads. The logger and the HTTP server, which only `index.ts` exports, would delay the
// start of `weir suspend`, and so the cut-off.
export { isLoopback } from './config/addresses.ts';
export { errorMessage, UsageError, WeirError } from './errors.ts';
export { exitStatusFor } from './process/exit-status.ts';
export { packageVersion } from './process/package-version.ts';
