import { exitStatusFor, UsageError } from '@weir/runtime';
import { CommanderError } from 'commander';
import { ConsoleError } from './client/console-client.ts';
import { EXIT_OK, EXIT_PROBLEM, EXIT_USAGE, type ExitCode } from './exit-code.ts';
import { programFor } from './program.ts';
import type { Terminal } from './terminal.ts';

/** Runs one command line and answers its exit code; whatever goes wrong is one message, never a stack. */
export async function runWeir(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  let code: ExitCode = EXIT_OK;
  const program = programFor({
    terminal,
    finish(wanted) {
      code = wanted;
    },
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    // Asked to end while it was still beginning.
    if (terminal.signal.aborted && error === terminal.signal.reason) return EXIT_OK;
    return exitCodeForError(error, terminal);
  }
}

function exitCodeForError(error: unknown, terminal: Terminal): ExitCode {
  // Commander has printed its message, or the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE;
  const { code, message } = errorOutcomeFor(error);
  terminal.err(`weir: ${message}\n`);
  if (error instanceof ConsoleError) return error.code === 'NO_CONSOLE' ? EXIT_USAGE : EXIT_PROBLEM;
  return code;
}

/** What we say ourselves needs no cause behind it; anything else does. */
function errorOutcomeFor(error: unknown): { readonly code: ExitCode; readonly message: string } {
  return error instanceof UsageError ? { code: EXIT_USAGE, message: error.message } : exitStatusFor(error);
}
