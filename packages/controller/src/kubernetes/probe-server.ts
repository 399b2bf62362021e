import type { KubeConfig } from '@kubernetes/client-node';
import { KubeApiError, kubeApiErrorFor } from './api-error.ts';
import { connectTo } from './connection.ts';

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
