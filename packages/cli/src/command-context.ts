import type { Terminal } from './terminal.ts';

export interface CommandContext {
  readonly terminal: Terminal;
  /** Sets the exit code of the command. Without this call the exit code is `EXIT_OK`. */
  finish(code: ExitCode): void;
}

export const EXIT_OK = 0;
export const EXIT_PROBLEM = 1;
/** Exit code for wrong usage and for a command that cannot start, for example because no console answers or a port is in use. */
export const EXIT_USAGE = 2;
export type ExitCode = typeof EXIT_OK | typeof EXIT_PROBLEM | typeof EXIT_USAGE;
