import { Command } from 'commander';
import { addSignInOptions } from './client/server-option.ts';
import type { CommandContext } from './command-context.ts';
import { addDemo } from './commands/demo.ts';
import { addDoctor } from './commands/doctor.ts';
import { addExplain } from './commands/explain.ts';
import { addGet } from './commands/get.ts';
import { addResume } from './commands/resume.ts';
import { addStandalone } from './commands/standalone.ts';
import { addSuspend } from './commands/suspend.ts';
import { addTop } from './commands/top.ts';
import { addTranslate } from './commands/translate.ts';
import { addUsage } from './commands/usage.ts';
import { version } from './version.ts';

/** The whole command line. */
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
      ...(terminal.columns() === undefined ? { getOutHelpWidth: () => 100, getErrHelpWidth: () => 100 } : {}),
    })
    .showHelpAfterError('(add --help to see what there is)')
    .addHelpText('after', EXIT_CODE_HELP);
  for (const add of [
    addStandalone,
    addTranslate,
    addTop,
    addUsage,
    addGet,
    addExplain,
    addSuspend,
    addResume,
    addDoctor,
    addDemo,
  ]) {
    add(program, context);
  }
  addSignInOptions(program);
  return program;
}

const EXIT_CODE_HELP = `
Exit codes: 0 fine, 1 a problem was found, 2 wrong usage or nothing to talk to.
Each command says more with --help.`;
