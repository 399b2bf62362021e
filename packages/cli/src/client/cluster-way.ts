import type { RequestOptions } from 'node:https';
import { sendRequest, type Transport } from './way.ts';

const AGGREGATED_API_PATH = '/apis/console.weir.dev/v1';

/** To the console of a cluster, through its API server, signed in as the kubeconfig says; undefined: as kubectl finds it. */
export async function clusterTransport(kubeconfig: string | undefined): Promise<Transport> {
  // Loaded here: whoever asks a console by its URL needs none of it, and begins at once.
  const { loadKubeConfig } = await import('@weir/controller');
  const config = loadKubeConfig(kubeconfig, '--kubeconfig or KUBECONFIG');
  const server = config.getCurrentCluster()?.server ?? '';
  const base = server.replace(/\/$/, '');
  return {
    baseUrl: `${base}${AGGREGATED_API_PATH}/`,
    hints: {
      unreachable: 'is the cluster of the kubeconfig there? or say where a console is with --server URL or WEIR_SERVER',
      notAConsole:
        'does this cluster have Weir, with its console as an API (console.aggregated of the chart; kubectl get apiservice v1.console.weir.dev)? or say where a console is with --server URL or WEIR_SERVER',
      untrusted: 'the kubeconfig has to name the authority of its certificate (certificate-authority of the cluster)',
    },
    async send(request) {
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options as never);
      const url = new URL(`${base}${request.path.replace('/api/v1', AGGREGATED_API_PATH)}`);
      // An API server ends after a minute what does not say that it lasts.
      if (request.isStream) url.searchParams.set('watch', 'true');
      return sendRequest({ ...options, url, request });
    },
  };
}
