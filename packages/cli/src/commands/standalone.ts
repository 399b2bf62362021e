import { parseCidr } from '@weir/model';
import {
  createLogger,
  formatHostPort,
  type HostPort,
  LOG_LEVELS,
  type LogLevel,
  parseHostPort,
  UsageError,
} from '@weir/runtime';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { EXIT_OK } from '../command-context.ts';
import { colourizeFor } from '../output/ansi.ts';
import { problemText, resolvedProblemText } from '../output/problem-text.ts';
import { untilAborted } from '../standalone/until-aborted.ts';
import type { Terminal } from '../terminal.ts';
import { addManifestOptions, type ManifestOptions } from './manifest-options.ts';

const EXAMPLES = `
Examples:
  weir standalone -f manifests/                        one proxy on 127.0.0.1, console on 127.0.0.1:8686
  weir standalone -f manifests/ --classless --node edge-1=192.0.2.10 --node edge-2=192.0.2.11
  weir standalone -f manifests/ --redis redis://:password@127.0.0.1:6379
  weir standalone -f /etc/weir/api-server --classless --console off --state /var/lib/weir-api-server \\
    --kubeconfig /etc/weir/api-server/kubeconfig     127.0.0.1:7443 for all API servers: docs/api-server.md

With --redis, Secrets are read only if WEIR_FLEET_SECRET is set: private keys lie there sealed with it.
With --kubeconfig nobody waits for the API server: while it is away, or names no ready endpoint of a Service, those
that it named last serve (kept in --state), or those of the files. It may be reached through this very process.
A directory may hold EndpointSlices with loopback addresses. Files are watched: what changes is served at once.
When everything listens, a line "ready" with the console's URL stands on stderr. SIGTERM and SIGINT end it in
good order; a second one at once.`;

interface StandaloneCommandOptions extends ManifestOptions {
  readonly console: HostPort | 'off';
  readonly workers?: number;
  readonly state?: string;
  readonly redis?: string;
  readonly trustProxyProtocol?: readonly string[];
  readonly kubeconfig?: string;
}

export function addStandalone(program: Command, { terminal, finish }: CommandContext): void {
  addManifestOptions(program.command('standalone'))
    .description('controller, proxies and console in one process, without cluster or Redis')
    .addOption(
      new Option('--console <host:port>', 'where the console listens, or off')
        .argParser(parseConsoleAddress)
        .default({ host: '127.0.0.1', port: 8686 }, '127.0.0.1:8686'),
    )
    .addOption(
      new Option('--workers <n>', 'worker threads of each proxy (default: one per core)').argParser(parseWorkers),
    )
    .option('--state <dir>', 'keeps the last good table and the ledger over restarts (default: nothing is kept)')
    .option(
      '--redis <url>',
      'a real Redis between the parts, in a form of WEIR_REDIS_URL, such as redis://[USER:PASSWORD@]HOST[:PORT]',
    )
    .addOption(
      new Option(
        '--trust-proxy-protocol <cidr>',
        'load balancers in front: what connects from there must begin with a PROXY header (repeatable)',
      ).argParser(appendCidr),
    )
    .option(
      '--kubeconfig <file>',
      'an API server: EndpointSlices that it has for the Services of the manifests replace theirs (default: none)',
    )
    .addHelpText('after', EXAMPLES)
    .action(async (options: StandaloneCommandOptions) => {
      await runUntilStopped(options, terminal);
      finish(EXIT_OK);
    });
}

/** Until somebody asks for the end. */
async function runUntilStopped(options: StandaloneCommandOptions, terminal: Terminal): Promise<void> {
  const paint = colourizeFor(terminal.colour);
  // Loaded here: commands that only ask a console need none of it, and begin at once.
  const { redisAccessFrom } = await import('@weir/store');
  const { startStandalone } = await import('../standalone/start-standalone.ts');
  const running = await startStandalone({
    ...options,
    redis: options.redis === undefined ? undefined : redisAccessFrom(terminal.env, options.redis),
    fleetSecret: terminal.env.WEIR_FLEET_SECRET,
    log: createLogger({ name: 'standalone', level: logLevelFrom(terminal.env) }),
    signal: terminal.signal,
    onProblemChanges({ appeared, resolved }) {
      for (const problem of resolved) terminal.err(`${resolvedProblemText(problem, paint)}\n`);
      for (const problem of appeared) terminal.err(`${problemText(problem, paint)}\n`);
    },
    onWarning: (advice) => terminal.err(`${paint('yellow', 'warning')}: ${advice}\n`),
  });
  try {
    terminal.err(`ready${running.consoleUrl === undefined ? '' : ` ${running.consoleUrl}`}\n`);
    await Promise.race([running.failed, running.drained, untilAborted(terminal.signal)]);
  } finally {
    await running.close();
  }
}

/** Problems are printed as they come; the log of the parts is for whoever asks for it. */
function logLevelFrom({ WEIR_LOG_LEVEL }: Terminal['env']): LogLevel {
  if (WEIR_LOG_LEVEL === undefined || WEIR_LOG_LEVEL === '') return 'error';
  const level = LOG_LEVELS.find((each) => each === WEIR_LOG_LEVEL);
  if (level === undefined)
    throw new UsageError(`WEIR_LOG_LEVEL is "${WEIR_LOG_LEVEL}"; use one of ${LOG_LEVELS.join(', ')}`);
  return level;
}

function parseConsoleAddress(text: string): HostPort | 'off' {
  if (text === 'off') return 'off';
  const place = parseHostPort(text);
  if (place === undefined) {
    throw new InvalidArgumentError(
      `Use ${formatHostPort({ host: '127.0.0.1', port: 8686 })}, another HOST:PORT, or off.`,
    );
  }
  return place;
}

/** More threads than this only wait for each other. */
const MAX_WORKERS = 128;

function parseWorkers(text: string): number {
  const workers = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (workers < 1 || workers > MAX_WORKERS) throw new InvalidArgumentError(`Use an integer from 1 to ${MAX_WORKERS}.`);
  return workers;
}

function appendCidr(value: string, before: readonly string[] = []): readonly string[] {
  const cidr = parseCidr(value);
  if (cidr === undefined) throw new InvalidArgumentError('Use a network such as 192.0.2.0/24 or 2001:db8::/32.');
  return [...before, cidr.text];
}
