import { join } from 'node:path';
import { type DirectorySource, openLiveEndpointsSource, ReloadingKubeApi, type Source } from '@weir/controller';
import { systemClock as clock, type Logger } from '@weir/runtime';

export interface SourceOptions {
  readonly kubeconfig?: string | undefined;
  readonly state?: string | undefined;
  readonly log: Logger;
}

/**
 * An API server that hangs is mostly one that is being lost. The connection to it may lead through this process, so nothing but its
 * silence tells; the next one goes to another API server.
 */
const API_SERVER_TIMEOUTS = { timeoutMs: 10_000, silenceMs: 30_000 };

/** The files, refined by an API server if there is one. */
export async function openSource(files: DirectorySource, { kubeconfig, state, log }: SourceOptions): Promise<Source> {
  if (kubeconfig === undefined) return files;
  const api = new ReloadingKubeApi(kubeconfig, API_SERVER_TIMEOUTS);
  const cachePath = state === undefined ? undefined : join(state, 'api-server-endpoints.json');
  return openLiveEndpointsSource({ files, api, cachePath, clock, log: log.child({ part: 'api-server' }) });
}
