import { type HostPort, parseHostPort } from '@weir/runtime';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { parseNetwork } from '../demo/demo-network.ts';

const EXAMPLES = `
Examples:
  weir demo                              until Ctrl-C; open the console and watch
  weir demo --once                       one round in half a minute; exit code 1 when something was not as it said

It listens on loopback addresses only: 127.0.0.31 to 127.0.0.44, ports 17777 to 19001.`;

interface DemoCommandOptions {
  readonly once?: boolean;
  readonly network: string;
  readonly console?: HostPort;
}

export function addDemo(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('demo')
    .description('three tenants with traffic on this machine: addresses, a refusal, live bandwidth, a cut-off')
    .option('--once', 'one round, check everything, end')
    .option('--network <127.x.y>', 'first three numbers of the loopback addresses', '127.0.0')
    .addOption(
      new Option(
        '--console <host:port>',
        'where the console listens (default: 127.0.0.1:8686; with --once any free port)',
      ).argParser(parseConsoleAddress),
    )
    .addHelpText('after', EXAMPLES)
    .action(async ({ once = false, network, console: place }: DemoCommandOptions) => {
      const options = {
        once,
        network: parseNetwork(network),
        console: place ?? { host: '127.0.0.1', port: once ? 0 : 8686 },
      };
      const { runDemo } = await import('../demo/run-demo.ts');
      finish(await runDemo(options, terminal));
    });
}

function parseConsoleAddress(text: string): HostPort {
  const place = parseHostPort(text);
  if (place === undefined) throw new InvalidArgumentError('Use HOST:PORT, such as 127.0.0.1:8686.');
  return place;
}
