import { parseCidr } from '@weir/model';
import {
  createLogger,
  type HostPort,
  LOG_LEVELS,
  type LogLevel,
  oneOf,
  parseConfig,
  parseHostPort,
} from '@weir/runtime';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { EXIT_OK } from '../command-context.ts';
import { pluralize } from '../output/amounts.ts';
import { colourizeFor } from '../output/ansi.ts';
import { problemText, resolvedProblemText } from '../output/problem-text.ts';
import { transportSettingsFrom } from '../standalone/transport-setting.ts';
import { untilAborted } from '../standalone/waiting.ts';
import type { Terminal } from '../terminal.ts';
import { addManifestOptions, type ManifestOptions, readManifestInput } from './manifest-options.ts';

const EXAMPLES = `
Examples:
  weir standalone -f manifests/                        one proxy on 127.0.0.1, console on 127.0.0.1:8686
  weir standalone -f manifests/ --classless --node edge-1=192.0.2.10 --node edge-2=192.0.2.11
  weir standalone -f manifests/ --redis redis://:password@127.0.0.1:6379
  weir standalone -f /etc/weir/api-server --classless --console off --state /var/lib/weir-api-server \\
    --kubeconfig /etc/weir/api-server/kubeconfig     API server mode, see docs/api-server.md

The command watches the files and applies every change at once. EndpointSlices in files may have loopback addresses.
When all listeners are open, the command prints the line "ready" with the console's URL on stderr. SIGTERM and SIGINT
drain the connections; a second signal ends the process at once.
With --redis, Secrets are read only if WEIR_FLEET_SECRET is set, because this secret encrypts private keys in Redis.
With --kubeconfig, the command does not wait for the API server. While the API server is unreachable, or has no ready
endpoint for a Service, the command uses the last endpoints from the API server (kept in --state). If there are none,
it uses the endpoints in the files. The connection to the API server may go through this process.`;

interface StandaloneCommandOptions extends ManifestOptions {
  readonly console: HostPort | 'off';
  readonly workers?: number;
  readonly state?: string;
  readonly redis?: string;
  readonly trustProxyProtocol?: readonly string[];
  readonly trustForwarded?: readonly string[];
  readonly writeForwarded?: boolean;
  readonly topClients?: boolean;
  readonly kubeconfig?: string;
}

export function addStandalone(program: Command, { terminal, finish }: CommandContext): void {
  addManifestOptions(program.command('standalone'))
    .description('run controller, proxies and console in one process, without a cluster or Redis')
    .addOption(
      new Option('--console <host:port>', 'address on which the console listens, or off')
        .argParser(parseConsoleAddress)
        .default({ host: '127.0.0.1', port: 8686 }, '127.0.0.1:8686'),
    )
    .addOption(
      new Option('--workers <n>', 'worker threads of each proxy (default: one per core)').argParser(parseWorkers),
    )
    .option('--state <dir>', 'directory that keeps the routing table and the usage across restarts (default: not kept)')
    .option(
      '--redis <url>',
      'Redis to use instead of memory, in any form that WEIR_REDIS_URL accepts, such as redis://[USER:PASSWORD@]HOST[:PORT]',
    )
    .addOption(
      new Option(
        '--trust-proxy-protocol <cidr>',
        'network of load balancers whose connections must begin with a PROXY header (repeatable)',
      ).argParser(appendCidr),
    )
    .addOption(
      new Option(
        '--trust-forwarded <cidr>',
        'network of HTTP proxies whose X-Forwarded-* fields are believed (repeatable; default: nobody is believed)',
      ).argParser(appendCidr),
    )
    .option('--write-forwarded', 'send Forwarded (RFC 7239) beside X-Forwarded-For to pods')
    .option('--top-clients', 'count the clients of each tenant with the most bytes and connections')
    .option(
      '--kubeconfig <file>',
      'kubeconfig of an API server; the EndpointSlices of this server replace the EndpointSlices of the manifests (default: none)',
    )
    .addHelpText('after', EXAMPLES)
    .action(async (options: StandaloneCommandOptions) => {
      await runUntilStopped(options, terminal);
      finish(EXIT_OK);
    });
}

async function runUntilStopped(options: StandaloneCommandOptions, terminal: Terminal): Promise<void> {
  const paint = colourizeFor(terminal.colour);
  // Loaded on demand, so that commands that only send requests to a console start fast.
  const { redisAccessFrom } = await import('@weir/store');
  const { startStandalone } = await import('../standalone/start-standalone.ts');
  const running = await startStandalone({
    ...options,
    stdin: await readManifestInput(options, terminal),
    redis: options.redis === undefined ? undefined : redisAccessFrom(terminal.env, options.redis),
    fleetSecret: terminal.env.WEIR_FLEET_SECRET,
    ...(await transportSettingsFrom(terminal.env)),
    log: createLogger({ name: 'standalone', level: logLevelFrom(terminal.env) }),
    signal: terminal.signal,
    onProblemChanges({ appeared, resolved }) {
      for (const problem of resolved) terminal.err(`${resolvedProblemText(problem, paint)}\n`);
      for (const problem of appeared) terminal.err(`${problemText(problem, paint)}\n`);
    },
    onWarning: (warning) => terminal.err(`${paint('yellow', 'warning')}: ${warning}\n`),
  });
  try {
    terminal.err(`ready${running.consoleUrl === undefined ? '' : ` ${running.consoleUrl}`}\n`);
    await Promise.race([running.failed, running.drained, untilAborted(terminal.signal)]);
  } finally {
    const connections = await running.countConnections();
    if (connections > 0) terminal.err(`${drainText(connections)}\n`);
    await running.close();
  }
}

function drainText(connections: number): string {
  return `waiting for ${pluralize(connections, 'open connection')} to end, at most for the drain-timeout of each Service (30 s by default); a second Ctrl-C or SIGTERM ends the process at once`;
}

/** Parses WEIR_LOG_LEVEL. The default is `error`, because the command itself prints all problems. */
function logLevelFrom(env: Terminal['env']): LogLevel {
  return parseConfig({ level: oneOf('WEIR_LOG_LEVEL', LOG_LEVELS, { default: 'error' }) }, env).level;
}

function parseConsoleAddress(text: string): HostPort | 'off' {
  if (text === 'off') return 'off';
  const address = parseHostPort(text);
  if (address === undefined) throw new InvalidArgumentError('Use HOST:PORT, such as 127.0.0.1:8686, or off.');
  return address;
}

/** Highest number of worker threads that `--workers` accepts, far above the number of cores of any node. */
const MAX_WORKERS = 128;

function parseWorkers(text: string): number {
  const workers = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (workers < 1 || workers > MAX_WORKERS) throw new InvalidArgumentError(`Use an integer from 1 to ${MAX_WORKERS}.`);
  return workers;
}

function appendCidr(value: string, previous: readonly string[] = []): readonly string[] {
  const cidr = parseCidr(value);
  if (cidr === undefined) throw new InvalidArgumentError('Use a network such as 192.0.2.0/24 or 2001:db8::/32.');
  return [...previous, cidr.text];
}
