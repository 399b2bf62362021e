import { existsSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { errorMessage, HttpClient, isProxyUrl, PROXY_URL_FORMAT, redactUrl, UsageError } from '@weir/runtime';
import { KubeApiError, kubeApiErrorFor } from './kube-api-error.ts';

/**
 * The way to the API server: the kubeconfig at `path`, else those named by KUBECONFIG, else ~/.kube/config, else the service account
 * of the pod. Throws `UsageError` when there is none, or it cannot be used; `namedBy` is what a user names one by.
 */
export function loadKubeConfig(path?: string, namedBy = 'KUBECONFIG'): KubeConfig {
  const config = new KubeConfig();
  const where = path ?? (process.env.KUBECONFIG || 'the kubeconfig');
  try {
    if (path === undefined) config.loadFromDefault();
    else config.loadFromFile(path);
  } catch (error) {
    throw new UsageError(`${where} cannot be read: ${reason(error)}; name a kubeconfig by ${namedBy}`);
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    const contexts = config.getContexts().map((each) => each.name);
    throw new UsageError(
      `${where} has no cluster for its current context "${config.getCurrentContext() ?? ''}"; choose one of ${contexts.join(', ') || '(none)'} with kubectl config use-context`,
    );
  }
  // What the library falls back to when it finds nothing at all.
  if (cluster.name === 'cluster' && cluster.server === 'http://localhost:8080' && config.getUsers().length === 1) {
    throw new UsageError(
      'no Kubernetes API server to be found: no KUBECONFIG, no ~/.kube/config, and this is no pod with a service account; name a kubeconfig by KUBECONFIG',
    );
  }
  if (!URL.canParse(cluster.server)) {
    throw new UsageError(`${where}: the server "${cluster.server}" of cluster "${cluster.name}" is no URL`);
  }
  if (cluster.proxyUrl !== undefined && !isProxyUrl(cluster.proxyUrl)) {
    throw new UsageError(
      `${where}: the proxy-url "${redactUrl(cluster.proxyUrl)}" of cluster "${cluster.name}" cannot be used; use ${PROXY_URL_FORMAT}`,
    );
  }
  if (cluster.caFile !== undefined && !existsSync(cluster.caFile)) {
    throw new UsageError(`${where}: the certificate ${cluster.caFile} of cluster "${cluster.name}" does not exist`);
  }
  return config;
}

/** Only the first line of what a parser says, and no cause: it goes on with lines of the file, and those may hold a token. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return errorMessage(error);
  if ('code' in error && error.code === 'ENOENT') return 'the file does not exist';
  return error.message.split('\n')[0]?.slice(0, 200) ?? 'unknown error';
}

/** To the API server of a kubeconfig, signed in as it says. Requests reject with `ApiError`, or the reason of their signal. */
export function connectTo(config: KubeConfig): HttpClient {
  const { server = '', proxyUrl } = config.getCurrentCluster() ?? {};
  const connection = new HttpClient({
    server,
    isProxied: proxyUrl !== undefined,
    userAgent: 'weir-controller',
    credentials: () => credentialsFor(config),
    wrapError: (cause) =>
      new KubeApiError('AWAY', `the API server ${connection.server} does not answer: ${errorMessage(cause)}`, {
        cause,
      }),
  });
  return connection;
}

/** Reads certificates and tokens that are rotated on disk, runs credential plugins. */
async function credentialsFor(config: KubeConfig): Promise<RequestOptions> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    throw new KubeApiError('UNAUTHORIZED', `cannot sign in to the API server: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  return options;
}

/** What an API server says of itself to whoever asks once. */
export interface ServerProbe {
  /** As `https://10.0.0.1:6443`. */
  readonly server: string;
  /** As `v1.36.2`; what follows is the vendor's. */
  readonly version: string;
  /** Milliseconds since the epoch by its clock, cut to the second below; undefined: it does not say (a proxy in front took it). */
  readonly date: number | undefined;
}

const TIMEOUT_MS = 10_000;

/** Asks the API server for its version and its time. Rejects with `ApiError`, or the reason of the signal. */
export async function probeServer(config: KubeConfig, signal: AbortSignal): Promise<ServerProbe> {
  const connection = connectTo(config);
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await connection.send({
      method: 'GET',
      path: '/version',
      headers: {},
      signal: AbortSignal.any([signal, limit]),
    });
    const { statusCode = 0, headers } = response;
    const text = Buffer.concat(await response.toArray()).toString('utf8');
    if (statusCode !== 200) throw kubeApiErrorFor('GET /version', response, text);
    const date = Date.parse(headers.date ?? '');
    return { server: connection.server, version: parseVersion(text), date: Number.isNaN(date) ? undefined : date };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (limit.aborted) throw new KubeApiError('AWAY', `the API server ${connection.server} did not answer in time`);
    if (error instanceof KubeApiError) throw error;
    throw new KubeApiError('REFUSED', `what answers at ${connection.server} is no API server of Kubernetes`, {
      cause: error,
    });
  } finally {
    connection.close();
  }
}

function parseVersion(text: string): string {
  const { gitVersion } = JSON.parse(text) as { gitVersion?: unknown };
  if (typeof gitVersion !== 'string') throw new Error('its answer names no version');
  return gitVersion;
}
