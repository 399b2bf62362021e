import type { RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { errorMessage, HttpClient } from '@weir/runtime';
import { KubeApiError } from './api-error.ts';

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
