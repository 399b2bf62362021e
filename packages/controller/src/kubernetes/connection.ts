import type { RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { errorMessage, ServerConnection } from '@weir/runtime';
import { ApiError } from './api-error.ts';

/** To the API server of a kubeconfig, signed in as it says. Requests reject with `ApiError`, or the reason of their signal. */
export function connectionTo(config: KubeConfig): ServerConnection {
  const { server = '', proxyUrl } = config.getCurrentCluster() ?? {};
  const connection = new ServerConnection({
    server,
    isProxied: proxyUrl !== undefined,
    userAgent: 'weir-controller',
    credentials: () => credentialsOf(config),
    failure: (cause) =>
      new ApiError('AWAY', `the API server ${connection.server} does not answer: ${errorMessage(cause)}`, { cause }),
  });
  return connection;
}

/** Reads certificates and tokens that are rotated on disk, runs credential plugins. */
async function credentialsOf(config: KubeConfig): Promise<RequestOptions> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    throw new ApiError('UNAUTHORIZED', `cannot sign in to the API server: ${errorMessage(error)}`, { cause: error });
  }
  return options;
}
