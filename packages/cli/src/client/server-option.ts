import { type Command, Option } from 'commander';
import type { Terminal } from '../terminal.ts';
import { ConsoleClient } from './console-client.ts';
import { DEFAULT_SERVER, findTransport, type TransportOptions } from './find-way.ts';

export type ServerOptions = TransportOptions;

const SERVER_FLAG = '--server';

export function serverOption(): Option {
  return new Option(
    `${SERVER_FLAG} <url>`,
    `where the console is (WEIR_SERVER; default ${DEFAULT_SERVER} when one answers there, else the one of the kubeconfig's cluster)`,
  );
}

/** To every command that asks a console; after what is its own. */
export function addSignInOptions(program: Command): void {
  for (const command of program.commands) {
    if (!command.options.some(({ long }) => long === SERVER_FLAG)) continue;
    command
      .option('--token <token>', 'a Kubernetes token for --server; others on this machine may see it (WEIR_TOKEN)')
      .option('--token-file <file>', 'a file that holds one')
      .option('--ca-file <file>', "the authority of the console's certificate, in PEM")
      .option('--plain-http', 'send the token over http to another machine, which others may read on its way')
      .option('--kubeconfig <file>', 'the console of this cluster (default: as kubectl finds it)');
  }
}

export function clientFor(terminal: Terminal, options: ServerOptions): ConsoleClient {
  return new ConsoleClient(() => findTransport(terminal, options));
}
