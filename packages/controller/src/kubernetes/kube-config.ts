import { existsSync } from 'node:fs';
import { KubeConfig } from '@kubernetes/client-node';
import { errorMessage, isProxyUrl, PROXY_URL_FORMAT, redactUrl, UsageError } from '@weir/runtime';

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
