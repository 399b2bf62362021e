import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@weir/runtime/command-line';
import { type Command, Option } from 'commander';
import type { Terminal } from '../terminal.ts';
import { ConsoleClient } from './console-client.ts';
import { http } from './node-http.ts';
import { clusterTransport, directTransport, readOptionFile, type Transport } from './transport.ts';

export interface ServerOptions {
  readonly server?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly plainHttp?: true;
  readonly kubeconfig?: string;
}

const SERVER_FLAG = '--server';

export function serverOption(): Option {
  return new Option(
    `${SERVER_FLAG} <url>`,
    `URL of the console (WEIR_SERVER; default: ${DEFAULT_SERVER} if a console answers there, else the console of the kubeconfig's cluster)`,
  );
}

/** Adds the sign-in options to every command that has `--server`, after the command's own options. */
export function addSignInOptions(program: Command): void {
  for (const command of program.commands) {
    if (!command.options.some(({ long }) => long === SERVER_FLAG)) continue;
    command
      .option(
        '--token <token>',
        'Kubernetes token for --server (WEIR_TOKEN); other users of this machine can see it in the process list',
      )
      .option('--token-file <file>', 'file that contains the Kubernetes token for --server')
      .option('--ca-file <file>', "PEM file with the CA of the console's certificate")
      .option('--plain-http', 'allow sending the token unencrypted to another machine')
      .option(
        '--kubeconfig <file>',
        'kubeconfig of the cluster whose console to use (default: the kubeconfig that kubectl uses)',
      );
  }
}

export function clientFor(terminal: Terminal, options: ServerOptions): ConsoleClient {
  return new ConsoleClient(() => findTransport(terminal, options));
}

export const DEFAULT_SERVER = 'http://127.0.0.1:8686';
const PROBE_TIMEOUT_MS = 1_000;

/**
 * Chooses the console in this order: the cluster that `--kubeconfig` names, the URL of `--server` or WEIR_SERVER, a console on this machine
 * (such as the console of `weir standalone`), the cluster of the default kubeconfig.
 */
async function findTransport({ env }: Pick<Terminal, 'env'>, options: ServerOptions): Promise<Transport> {
  const { kubeconfig, caFile, token, tokenFile, plainHttp: allowPlainHttp } = options;
  const server = options.server ?? (env.WEIR_SERVER || undefined);
  if (kubeconfig !== undefined) {
    if (options.server !== undefined)
      throw new UsageError('--server and --kubeconfig each name a console; use only one of the two options');
    if ([token, tokenFile, caFile].some((each) => each !== undefined)) throw new UsageError(CONFLICTING_SIGN_IN);
    return clusterTransport(kubeconfig);
  }
  const isServerMeant = server !== undefined || [token, tokenFile, caFile].some((each) => each !== undefined);
  // Sends WEIR_TOKEN only to a server that the user named, never to an unknown process that listens on this machine.
  const direct = (): Transport =>
    directTransport({
      server: server ?? DEFAULT_SERVER,
      source: options.server === undefined && server !== undefined ? 'WEIR_SERVER' : SERVER_FLAG,
      token: tokenFrom(options, isServerMeant ? env : {}),
      caFile,
      allowPlainHttp,
    });
  if (isServerMeant) return direct();
  if (!hasKubeconfig(env) || (await isLocalConsoleListening())) return direct();
  return clusterTransport(undefined);
}

const CONFLICTING_SIGN_IN =
  '--token, --token-file and --ca-file need --server; omit these options with --kubeconfig, because the kubeconfig contains the user and the CA';

/** Matches a bearer token (RFC 6750, section 2.1). */
const TOKEN_PATTERN = /^[A-Za-z0-9._~+/-]+=*$/;

function tokenFrom({ token, tokenFile }: ServerOptions, env: Terminal['env']): string | undefined {
  if (token !== undefined && tokenFile !== undefined)
    throw new UsageError('--token and --token-file are both given; use one of them');
  const [name, text] =
    token !== undefined
      ? ['--token', token]
      : tokenFile !== undefined
        ? ['--token-file', readOptionFile('--token-file', tokenFile)]
        : ['WEIR_TOKEN', env.WEIR_TOKEN || undefined];
  const trimmed = text?.trim();
  if (trimmed !== undefined && !TOKEN_PATTERN.test(trimmed))
    throw new UsageError(`invalid ${name}: expected a token of letters, digits and ._~+/-`);
  return trimmed;
}

/** Whether kubectl would find a kubeconfig, or this process runs in a pod. */
function hasKubeconfig({ KUBECONFIG, KUBERNETES_SERVICE_HOST, HOME }: Terminal['env']): boolean {
  return Boolean(KUBECONFIG || KUBERNETES_SERVICE_HOST) || existsSync(join(HOME ?? homedir(), '.kube', 'config'));
}

/**
 * Whether a console at `DEFAULT_SERVER` answers plain HTTP. A console with TLS does not count: it is the console of the pod in which this
 * command runs, and it needs a token.
 */
function isLocalConsoleListening(): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const request = http.get(`${DEFAULT_SERVER}/healthz`, { agent: false, timeout: PROBE_TIMEOUT_MS }, () =>
    resolve(true),
  );
  request.once('timeout', () => resolve(false));
  request.once('error', () => resolve(false));
  return promise.finally(() => request.destroy());
}
