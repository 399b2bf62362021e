import type { ExitCode } from './exit-code.ts';
import type { Terminal } from './terminal.ts';

/** What every command gets. */
export interface CommandContext {
  readonly terminal: Terminal;
  /** The exit code of the command; without it the command was fine. */
  finish(code: ExitCode): void;
}
