import { existsSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { errorMessage, HttpClient, isProxyUrl, PROXY_URL_FORMAT, redactUrl, UsageError } from '@weir/runtime';
import { KubeApiError, kubeApiErrorFor } from './kube-api-error.ts';

/**
 * Loads the kubeconfig at `path`. If `path` is undefined, loads the first of these that exists: the files in KUBECONFIG,
 * ~/.kube/config, the service account of the pod. Throws `UsageError` if there is no usable configuration. `setBy` is the option or
 * variable with which the user names a kubeconfig; the error message contains it.
 */
export function loadKubeConfig(path?: string, setBy = 'KUBECONFIG'): KubeConfig {
  const config = new KubeConfig();
  const configName = path ?? (process.env.KUBECONFIG || 'the kubeconfig');
  try {
    if (path === undefined) config.loadFromDefault();
    else config.loadFromFile(path);
  } catch (error) {
    throw new UsageError(`${configName} cannot be read: ${loadFailureReason(error)}; name a kubeconfig with ${setBy}`);
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    const contexts = config.getContexts().map((each) => each.name);
    throw new UsageError(
      `${configName} has no cluster for its current context "${config.getCurrentContext() ?? ''}"; choose one of ${contexts.join(', ') || '(none)'} with kubectl config use-context`,
    );
  }
  // The client library returns this cluster if it finds no configuration.
  if (cluster.name === 'cluster' && cluster.server === 'http://localhost:8080' && config.getUsers().length === 1) {
    throw new UsageError(
      'no Kubernetes API server found: KUBECONFIG is not set, ~/.kube/config does not exist, and this is not a pod with a service account; name a kubeconfig with KUBECONFIG',
    );
  }
  if (!URL.canParse(cluster.server)) {
    throw new UsageError(
      `${configName}: the server "${cluster.server}" of cluster "${cluster.name}" is not a URL; correct it`,
    );
  }
  if (cluster.proxyUrl !== undefined && !isProxyUrl(cluster.proxyUrl)) {
    throw new UsageError(
      `${configName}: the proxy-url "${redactUrl(cluster.proxyUrl)}" of cluster "${cluster.name}" cannot be used; use ${PROXY_URL_FORMAT}`,
    );
  }
  if (cluster.caFile !== undefined && !existsSync(cluster.caFile)) {
    throw new UsageError(
      `${configName}: the certificate ${cluster.caFile} of cluster "${cluster.name}" does not exist; correct certificate-authority`,
    );
  }
  return config;
}

/** Returns the first line of a parser's message. The other lines and the cause quote the file, and the file may contain a token. */
function loadFailureReason(error: unknown): string {
  if (!(error instanceof Error)) return errorMessage(error);
  if ('code' in error && error.code === 'ENOENT') return 'the file does not exist';
  return error.message.split('\n')[0]?.slice(0, 200) ?? 'unknown error';
}

/**
 * Creates a client for the current cluster and user of a kubeconfig. Requests reject with `KubeApiError`, or with the reason of their
 * signal.
 */
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

/**
 * Returns the current credentials. Reads certificates and tokens from disk again, because they may have been rotated, and runs
 * credential plugins.
 */
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

export interface ServerProbe {
  /** URL such as `https://10.0.0.1:6443`. */
  readonly server: string;
  /** Version such as `v1.36.2`; vendors add a suffix. */
  readonly version: string;
  /** The server's clock in milliseconds since the epoch, rounded down to a second. It is undefined if a proxy removed the Date header. */
  readonly date: number | undefined;
}

const PROBE_TIMEOUT_MS = 10_000;

/** Asks the API server for its version and time. Rejects with `KubeApiError`, or with the reason of the signal. */
export async function probeServer(config: KubeConfig, signal: AbortSignal): Promise<ServerProbe> {
  const connection = connectTo(config);
  const timeout = AbortSignal.timeout(PROBE_TIMEOUT_MS);
  try {
    const response = await connection.send({
      method: 'GET',
      path: '/version',
      headers: {},
      signal: AbortSignal.any([signal, timeout]),
    });
    const { statusCode = 0, headers } = response;
    const text = Buffer.concat(await response.toArray()).toString('utf8');
    if (statusCode !== 200) throw kubeApiErrorFor('GET /version', response, text);
    const date = Date.parse(headers.date ?? '');
    return { server: connection.server, version: parseVersion(text), date: Number.isNaN(date) ? undefined : date };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (timeout.aborted) throw new KubeApiError('AWAY', `the API server ${connection.server} did not answer in time`);
    if (error instanceof KubeApiError) throw error;
    throw new KubeApiError('REFUSED', `${connection.server} is not a Kubernetes API server`, {
      cause: error,
    });
  } finally {
    connection.close();
  }
}

function parseVersion(text: string): string {
  const { gitVersion } = JSON.parse(text) as { gitVersion?: unknown };
  if (typeof gitVersion !== 'string') throw new Error('the response has no gitVersion');
  return gitVersion;
}
