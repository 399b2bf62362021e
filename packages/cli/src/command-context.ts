import type { Terminal } from './terminal.ts';

/** What every command gets. */
export interface CommandContext {
  readonly terminal: Terminal;
  /** The exit code of the command; without it the command was fine. */
  finish(code: ExitCode): void;
}

/** What every command answers with. */
export const EXIT_OK = 0;
export const EXIT_PROBLEM = 1;
/** Wrong usage, or a world in which the command cannot begin: nothing there, port taken, password refused. */
export const EXIT_USAGE = 2;
export type ExitCode = typeof EXIT_OK | typeof EXIT_PROBLEM | typeof EXIT_USAGE;
