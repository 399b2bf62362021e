import { Argument, type Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { KIND_NAMES } from './get.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

const EXAMPLES = `
Examples:
  weir completion bash >> ~/.bashrc
  source <(weir completion zsh)
  weir completion fish > ~/.config/fish/completions/weir.fish

The script completes commands, options, fixed values such as output formats, and files.`;

export function addCompletion(program: Command, { terminal }: CommandContext): void {
  program
    .command('completion')
    .description('print a completion script for bash, zsh or fish')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', EXAMPLES)
    .action((shell: Shell) => {
      terminal.out(SCRIPTS[shell](program.commands.map(wordsOf)));
    });
}

/** The words that may follow one command. */
interface CommandWords {
  readonly command: string;
  readonly description: string;
  readonly options: readonly string[];
  /** The values of the first argument, if they are fixed. */
  readonly values: readonly string[];
}

function wordsOf(command: Command): CommandWords {
  const options = command.options.flatMap(({ short, long }) => [long, short].filter((flag) => flag != null));
  const values =
    command.name() === 'get' ? Object.keys(KIND_NAMES) : (command.registeredArguments[0]?.argChoices ?? []);
  return { command: command.name(), description: command.description(), options: [...options, '--help'], values };
}

const SCRIPTS: Readonly<Record<Shell, (commands: readonly CommandWords[]) => string>> = {
  bash: (commands) => `${bashFunction(commands)}complete -o default -F _weir weir kubectl-weir\n`,
  // zsh runs the function of bash.
  zsh: (commands) =>
    `autoload -U +X bashcompinit && bashcompinit\n${bashFunction(commands)}complete -o default -F _weir weir kubectl-weir\n`,
  fish: (commands) =>
    [
      ...commands.map(
        ({ command, description }) =>
          `complete -c weir -n __fish_use_subcommand -f -a ${command} -d '${description.replaceAll("'", "\\'")}'`,
      ),
      ...commands.flatMap(({ command, options, values }) => [
        ...values.map((value) => `complete -c weir -n '__fish_seen_subcommand_from ${command}' -f -a ${value}`),
        ...options
          .filter((flag) => flag.startsWith('--'))
          .map((flag) => `complete -c weir -n '__fish_seen_subcommand_from ${command}' -l ${flag.slice(2)}`),
      ]),
      '',
    ].join('\n'),
};

/** Returns a function that completes the command as the first word, then the values and options of the command. */
function bashFunction(commands: readonly CommandWords[]): string {
  const cases = commands.map(
    ({ command, options, values }) => `    ${command}) words="${[...values, ...options].join(' ')}" ;;`,
  );
  return `_weir() {
  local words current="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${commands.map(({ command }) => command).join(' ')}"
  else
    case "\${COMP_WORDS[1]}" in
${cases.map((line) => `  ${line}`).join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
`;
}
