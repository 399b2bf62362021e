export type RuntimeErrorCode =
  | 'CONFIG_INVALID'
  | 'USAGE'
  | 'START_FAILED'
  | 'CLOSE_FAILED'
  | 'LISTEN_FAILED'
  | 'FILE_FAILED';

/** Every code of this package and what it means, for the page of error codes. */
export const RUNTIME_ERRORS: Readonly<Record<RuntimeErrorCode, string>> = {
  CONFIG_INVALID: 'A setting has a wrong value, or a required one is missing; the message lists all mistakes.',
  USAGE: 'The command line is wrong.',
  START_FAILED: 'A part of the process could not start; the message names it and the reason.',
  CLOSE_FAILED: 'A part of the process could not be closed; the log has the reason.',
  LISTEN_FAILED: 'A server cannot listen on its address.',
  FILE_FAILED: 'A file or directory of ours cannot be read, written or created.',
};
