import { KubeConfig } from '@kubernetes/client-node';
import { errorMessage, isProxyUrl, PROXY_URL_FORMAT, redactUrl, UsageError } from '@weir/runtime';

/**
 * The API server that Suspensions go to: the file of KUBECONFIG, else the cluster that this process runs in, else none. Not
 * `~/.kube/config`: whose cluster that happens to be is no reason to write into it.
 */
export function findKubeconfig(env: Readonly<Record<string, string | undefined>>): KubeConfig | undefined {
  const kubeconfig = new KubeConfig();
  const { KUBECONFIG, KUBERNETES_SERVICE_HOST } = env;
  if (KUBECONFIG !== undefined && KUBECONFIG !== '') {
    try {
      kubeconfig.loadFromDefault();
    } catch (error) {
      const message = `KUBECONFIG is ${KUBECONFIG}, which cannot be used (${errorMessage(error)}); name a readable kubeconfig, or unset it`;
      throw new UsageError(message, { cause: error });
    }
  } else if (KUBERNETES_SERVICE_HOST !== undefined) kubeconfig.loadFromCluster();
  else return undefined;
  const cluster = kubeconfig.getCurrentCluster();
  if (cluster === null) {
    throw new UsageError('the kubeconfig has no current context; choose one with kubectl config use-context');
  }
  if (cluster.proxyUrl !== undefined && !isProxyUrl(cluster.proxyUrl)) {
    throw new UsageError(
      `the proxy-url "${redactUrl(cluster.proxyUrl)}" of the kubeconfig cannot be used; use ${PROXY_URL_FORMAT}`,
    );
  }
  return kubeconfig;
}
