import { exitStatusFor, UsageError } from '@weir/runtime';
import { Command, CommanderError } from 'commander';
import { ConsoleError } from './client/console-client.ts';
import { addSignInOptions } from './client/server-options.ts';
import { type CommandContext, EXIT_OK, EXIT_PROBLEM, EXIT_USAGE, type ExitCode } from './command-context.ts';
import { addCompletion } from './commands/completion.ts';
import { addDemo } from './commands/demo.ts';
import { addDoctor } from './commands/doctor.ts';
import { addExplain } from './commands/explain.ts';
import { addGet } from './commands/get.ts';
import { addLogs } from './commands/logs.ts';
import { addStandalone } from './commands/standalone.ts';
import { addResume, addSuspend } from './commands/suspend.ts';
import { addTop } from './commands/top.ts';
import { addTranslate } from './commands/translate.ts';
import { addUsage } from './commands/usage.ts';
import { addVersion } from './commands/version.ts';
import type { Terminal } from './terminal.ts';
import { version } from './version.ts';

/** Runs one command line and returns its exit code. Prints every error as one message, without a stack trace. */
export async function runWeir(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  let code: ExitCode = EXIT_OK;
  const program = programFor({
    terminal,
    finish(exitCode) {
      code = exitCode;
    },
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    // A signal such as SIGINT or SIGTERM arrived while the command was starting.
    if (terminal.signal.aborted && error === terminal.signal.reason) return EXIT_OK;
    return exitCodeForError(error, terminal);
  }
}

function exitCodeForError(error: unknown, terminal: Terminal): ExitCode {
  // Commander has already printed its message or the requested help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE;
  const { code, message } = errorOutcomeFor(error);
  terminal.err(`weir: ${message}\n`);
  if (error instanceof ConsoleError) return error.code === 'NO_CONSOLE' ? EXIT_USAGE : EXIT_PROBLEM;
  return code;
}

/** Returns the exit code and the message for an error. The message of a `UsageError` is complete without the messages of its causes. */
function errorOutcomeFor(error: unknown): { readonly code: ExitCode; readonly message: string } {
  return error instanceof UsageError ? { code: EXIT_USAGE, message: error.message } : exitStatusFor(error);
}

const DEFAULT_HELP_COLUMNS = 100;

/** Builds the `weir` command with all subcommands. */
export function programFor(context: CommandContext): Command {
  const { terminal } = context;
  const program = new Command('weir')
    .description('LoadBalancer Services for every tenant of a shared Kubernetes cluster, on ordinary nodes')
    .version(version(), '-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.err(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'weir: ')),
      getOutHasColors: () => terminal.colour,
      getErrHasColors: () => terminal.colour,
      getOutHelpWidth: () => terminal.columns() ?? DEFAULT_HELP_COLUMNS,
      getErrHelpWidth: () => terminal.columns() ?? DEFAULT_HELP_COLUMNS,
    })
    .showHelpAfterError('(add --help for usage and examples)')
    .addHelpText('after', EXIT_CODE_HELP);
  for (const add of [
    addStandalone,
    addTranslate,
    addTop,
    addUsage,
    addGet,
    addExplain,
    addLogs,
    addSuspend,
    addResume,
    addDoctor,
    addDemo,
    addVersion,
    addCompletion,
  ]) {
    add(program, context);
  }
  addSignInOptions(program);
  return program;
}

const EXIT_CODE_HELP = `
Exit codes: 0 success, 1 the command found a problem, 2 wrong usage, or no console, cluster or Redis answers.
Run weir COMMAND --help for options and examples of a command.`;
