import { existsSync } from 'node:fs';
import { get } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@weir/runtime';
import type { Terminal } from '../terminal.ts';
import { clusterWay } from './cluster-way.ts';
import { directWay, readNamed } from './direct-way.ts';
import type { Way } from './way.ts';

export const DEFAULT_SERVER = 'http://127.0.0.1:8686';
const ANSWERS_WITHIN_MS = 1_000;

export interface WayOptions {
  readonly server?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly plainHttp?: true;
  readonly kubeconfig?: string;
}

/** A URL that was named; else a console on this machine, such as that of `weir standalone`; else the one of the kubeconfig's cluster. */
export async function findWay({ env }: Pick<Terminal, 'env'>, options: WayOptions): Promise<Way> {
  const { kubeconfig, caFile, token, tokenFile, plainHttp } = options;
  const named = options.server ?? (env.WEIR_SERVER || undefined);
  if (kubeconfig !== undefined) {
    if (options.server !== undefined)
      throw new UsageError('--server and --kubeconfig name two ways to a console; use one');
    if ([token, tokenFile, caFile].some((each) => each !== undefined)) throw new UsageError(KUBECONFIG_SIGNS_IN);
    return clusterWay(kubeconfig);
  }
  const isMeant = named !== undefined || [token, tokenFile, caFile].some((each) => each !== undefined);
  // A token of the environment goes to a server that was named, not to whoever listens on this machine.
  const direct = (): Way =>
    directWay({ server: named ?? DEFAULT_SERVER, token: tokenOf(options, isMeant ? env : {}), caFile, plainHttp });
  if (isMeant) return direct();
  if (!hasKubeconfig(env) || (await isAnswering())) return direct();
  return clusterWay(undefined);
}

const KUBECONFIG_SIGNS_IN =
  '--token, --token-file and --ca-file are for --server; a kubeconfig has a user and an authority of its own: leave them out';

/** RFC 6750, section 2.1. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

function tokenOf({ token, tokenFile }: WayOptions, env: Terminal['env']): string | undefined {
  if (token !== undefined && tokenFile !== undefined)
    throw new UsageError('--token and --token-file are both given; use one');
  const [name, text] =
    token !== undefined
      ? ['--token', token]
      : tokenFile !== undefined
        ? ['--token-file', readNamed('--token-file', tokenFile)]
        : ['WEIR_TOKEN', env.WEIR_TOKEN || undefined];
  const trimmed = text?.trim();
  if (trimmed !== undefined && !TOKEN.test(trimmed))
    throw new UsageError(`${name} holds no token: it has other characters, or none`);
  return trimmed;
}

/** As kubectl would find one. */
function hasKubeconfig({ KUBECONFIG, KUBERNETES_SERVICE_HOST, HOME }: Terminal['env']): boolean {
  return Boolean(KUBECONFIG || KUBERNETES_SERVICE_HOST) || existsSync(join(HOME ?? homedir(), '.kube', 'config'));
}

/** Whether HTTP is spoken there. A console that speaks TLS is one of a cluster, in whose pod we are: it wants a token. */
function isAnswering(): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const asking = get(`${DEFAULT_SERVER}/healthz`, { agent: false, timeout: ANSWERS_WITHIN_MS }, () => resolve(true));
  asking.once('timeout', () => resolve(false));
  asking.once('error', () => resolve(false));
  return promise.finally(() => asking.destroy());
}
