import { type HostPort, parseHostPort } from '@weir/runtime';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { parseNetwork } from '../demo/demo-network.ts';

const EXAMPLES = `
Examples:
  weir demo                              run until Ctrl-C; open the console and watch
  weir demo --once                       run one round in half a minute and check every step

The demo listens only on loopback addresses: 127.0.0.31 to 127.0.0.44, ports 17777 to 19001.
The exit code is 1 if a check failed.`;

interface DemoCommandOptions {
  readonly once?: boolean;
  readonly network: string;
  readonly console?: HostPort;
}

export function addDemo(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('demo')
    .description(
      'run three tenants with traffic on this machine, and show a refused Service, live bandwidth and a cut-off',
    )
    .option('--once', 'run one round, check every step, and exit')
    .option('--network <127.x.y>', 'first three numbers of the loopback addresses to use', '127.0.0')
    .addOption(
      new Option(
        '--console <host:port>',
        'address on which the console listens (default: 127.0.0.1:8686; with --once any free port)',
      ).argParser(parseConsoleAddress),
    )
    .addHelpText('after', EXAMPLES)
    .action(async ({ once = false, network, console: consoleAddress }: DemoCommandOptions) => {
      const options = {
        once,
        network: parseNetwork(network),
        console: consoleAddress ?? { host: '127.0.0.1', port: once ? 0 : 8686 },
      };
      const { runDemo } = await import('../demo/run-demo.ts');
      finish(await runDemo(options, terminal));
    });
}

function parseConsoleAddress(text: string): HostPort {
  const address = parseHostPort(text);
  if (address === undefined) throw new InvalidArgumentError('Use HOST:PORT, such as 127.0.0.1:8686.');
  return address;
}
