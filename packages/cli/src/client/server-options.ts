import { existsSync } from 'node:fs';
import { get } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@weir/runtime';
import { type Command, Option } from 'commander';
import type { Terminal } from '../terminal.ts';
import { ConsoleClient } from './console-client.ts';
import { clusterTransport, directTransport, readOptionFile, type Transport } from './transport.ts';

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

export const DEFAULT_SERVER = 'http://127.0.0.1:8686';
const PROBE_TIMEOUT_MS = 1_000;

export interface TransportOptions {
  readonly server?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly plainHttp?: true;
  readonly kubeconfig?: string;
}

/** A URL that was named; else a console on this machine, such as that of `weir standalone`; else the one of the kubeconfig's cluster. */
export async function findTransport({ env }: Pick<Terminal, 'env'>, options: TransportOptions): Promise<Transport> {
  const { kubeconfig, caFile, token, tokenFile, plainHttp: allowPlainHttp } = options;
  const named = options.server ?? (env.WEIR_SERVER || undefined);
  if (kubeconfig !== undefined) {
    if (options.server !== undefined)
      throw new UsageError('--server and --kubeconfig name two ways to a console; use one');
    if ([token, tokenFile, caFile].some((each) => each !== undefined)) throw new UsageError(CONFLICTING_SIGN_IN);
    return clusterTransport(kubeconfig);
  }
  const isMeant = named !== undefined || [token, tokenFile, caFile].some((each) => each !== undefined);
  // A token of the environment goes to a server that was named, not to whoever listens on this machine.
  const direct = (): Transport =>
    directTransport({
      server: named ?? DEFAULT_SERVER,
      token: tokenFrom(options, isMeant ? env : {}),
      caFile,
      allowPlainHttp,
    });
  if (isMeant) return direct();
  if (!hasKubeconfig(env) || (await isLocalConsoleListening())) return direct();
  return clusterTransport(undefined);
}

const CONFLICTING_SIGN_IN =
  '--token, --token-file and --ca-file are for --server; a kubeconfig has a user and an authority of its own: leave them out';

/** RFC 6750, section 2.1. */
const TOKEN_PATTERN = /^[A-Za-z0-9._~+/-]+=*$/;

function tokenFrom({ token, tokenFile }: TransportOptions, env: Terminal['env']): string | undefined {
  if (token !== undefined && tokenFile !== undefined)
    throw new UsageError('--token and --token-file are both given; use one');
  const [name, text] =
    token !== undefined
      ? ['--token', token]
      : tokenFile !== undefined
        ? ['--token-file', readOptionFile('--token-file', tokenFile)]
        : ['WEIR_TOKEN', env.WEIR_TOKEN || undefined];
  const trimmed = text?.trim();
  if (trimmed !== undefined && !TOKEN_PATTERN.test(trimmed))
    throw new UsageError(`${name} holds no token: it has other characters, or none`);
  return trimmed;
}

/** As kubectl would find one. */
function hasKubeconfig({ KUBECONFIG, KUBERNETES_SERVICE_HOST, HOME }: Terminal['env']): boolean {
  return Boolean(KUBECONFIG || KUBERNETES_SERVICE_HOST) || existsSync(join(HOME ?? homedir(), '.kube', 'config'));
}

/** Whether HTTP is spoken there. A console that speaks TLS is one of a cluster, in whose pod we are: it wants a token. */
function isLocalConsoleListening(): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const asking = get(`${DEFAULT_SERVER}/healthz`, { agent: false, timeout: PROBE_TIMEOUT_MS }, () => resolve(true));
  asking.once('timeout', () => resolve(false));
  asking.once('error', () => resolve(false));
  return promise.finally(() => asking.destroy());
}
