import { exitStatusFor, UsageError } from '@weir/runtime/command-line';
import { Command, CommanderError } from 'commander';
import { ConsoleError } from './client/console-client.ts';
import { addSignInOptions } from './client/server-options.ts';
import { type CommandContext, EXIT_OK, EXIT_PROBLEM, EXIT_USAGE, type ExitCode } from './command-context.ts';
import type { Terminal } from './terminal.ts';
import { version } from './version.ts';

type AddCommand = (program: Command, context: CommandContext) => void;

/** Loads each command, in the order of the help. */
const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  standalone: async () => (await import('./commands/standalone.ts')).addStandalone,
  translate: async () => (await import('./commands/translate.ts')).addTranslate,
  top: async () => (await import('./commands/top.ts')).addTop,
  usage: async () => (await import('./commands/usage.ts')).addUsage,
  get: async () => (await import('./commands/get.ts')).addGet,
  explain: async () => (await import('./commands/explain.ts')).addExplain,
  logs: async () => (await import('./commands/logs.ts')).addLogs,
  suspend: async () => (await import('./commands/suspend.ts')).addSuspend,
  resume: async () => (await import('./commands/suspend.ts')).addResume,
  doctor: async () => (await import('./commands/doctor.ts')).addDoctor,
  demo: async () => (await import('./commands/demo.ts')).addDemo,
  version: async () => (await import('./commands/version.ts')).addVersion,
  completion: async () => (await import('./commands/completion.ts')).addCompletion,
};

/** Runs one command line and returns its exit code. Prints every error as one message, without a stack trace. */
export async function runWeir(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  let code: ExitCode = EXIT_OK;
  const context: CommandContext = {
    terminal,
    finish(exitCode) {
      code = exitCode;
    },
  };
  try {
    const program = programFor(context, await loadCommands(args[0]));
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
  if (error instanceof ConsoleError) return exitCodeForConsoleError(error);
  return code;
}

/** Returns 2 if no console answers or the console rejects the request as invalid, otherwise 1. */
function exitCodeForConsoleError({ code, reason }: ConsoleError): ExitCode {
  return code === 'NO_CONSOLE' || reason === 'InvalidRequest' ? EXIT_USAGE : EXIT_PROBLEM;
}

/** Returns the exit code and the message for an error. The message of a `UsageError` is complete without the messages of its causes. */
function errorOutcomeFor(error: unknown): { readonly code: ExitCode; readonly message: string } {
  return error instanceof UsageError ? { code: EXIT_USAGE, message: error.message } : exitStatusFor(error);
}

const DEFAULT_HELP_COLUMNS = 100;

/**
 * Loads the command `name`, or all commands for the help, the completion or a wrong name. Loading all takes a third of the time of a
 * `weir suspend`, while the tenant is not cut off yet.
 */
async function loadCommands(name: string = ''): Promise<readonly AddCommand[]> {
  const load = name === 'completion' || !Object.hasOwn(COMMANDS, name) ? undefined : COMMANDS[name];
  return load === undefined ? Promise.all(Object.values(COMMANDS).map((each) => each())) : [await load()];
}

/** Builds the `weir` command with the given subcommands. */
function programFor(context: CommandContext, commands: readonly AddCommand[]): Command {
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
  for (const add of commands) add(program, context);
  addSignInOptions(program);
  return program;
}

const EXIT_CODE_HELP = `
Exit codes: 0 success, 1 the command found a problem, 2 wrong usage, or no console, cluster or Redis answers.
Run weir COMMAND --help for options and examples of a command.`;
