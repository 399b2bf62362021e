import type { RequestOptions } from 'node:https';
import { sendTo, type Way } from './way.ts';

const GROUP = '/apis/console.weir.dev/v1';

/** To the console of a cluster, through its API server, signed in as the kubeconfig says; undefined: as kubectl finds it. */
export async function clusterWay(kubeconfig: string | undefined): Promise<Way> {
  // Loaded here: whoever asks a console by its URL needs none of it, and begins at once.
  const { loadKubeConfig } = await import('@weir/controller');
  const config = loadKubeConfig(kubeconfig, '--kubeconfig or KUBECONFIG');
  const server = config.getCurrentCluster()?.server ?? '';
  const base = server.replace(/\/$/, '');
  return {
    where: `${base}${GROUP}/`,
    advice: {
      nobody: 'is the cluster of the kubeconfig there? or say where a console is with --server URL or WEIR_SERVER',
      another:
        'does this cluster have Weir, with its console as an API (console.aggregated of the chart; kubectl get apiservice v1.console.weir.dev)? or say where a console is with --server URL or WEIR_SERVER',
      untrusted: 'the kubeconfig has to name the authority of its certificate (certificate-authority of the cluster)',
    },
    async send(question) {
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options as never);
      const url = new URL(`${base}${question.path.replace('/api/v1', GROUP)}`);
      // An API server ends after a minute what does not say that it lasts.
      if (question.isStream) url.searchParams.set('watch', 'true');
      return sendTo({ ...options, url, question });
    },
  };
}
