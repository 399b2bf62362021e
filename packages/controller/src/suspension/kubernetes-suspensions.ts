import type { Cutoff } from '@weir/model';
import { ApiError } from '../kubernetes/api-error.ts';
import type { KubeApi } from '../kubernetes/kube-api.ts';
import type { SuspensionWriter } from './suspension-writer.ts';

const ALL = '/apis/weir.dev/v1alpha1/suspensions';
const TIMEOUT_MS = 5_000;

export class KubernetesSuspensions implements SuspensionWriter {
  readonly #api: Pick<KubeApi, 'request'>;

  constructor({ api }: { readonly api: Pick<KubeApi, 'request'> }) {
    this.#api = api;
  }

  async remove({ name, uid }: Cutoff, signal: AbortSignal): Promise<void> {
    try {
      await this.#api.request({
        method: 'DELETE',
        path: pathOf(name),
        body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } },
        timeoutMs: TIMEOUT_MS,
        signal,
      });
    } catch (error) {
      if (!(error instanceof ApiError && (error.code === 'NOT_FOUND' || error.code === 'CONFLICT'))) throw error;
    }
  }
}

function pathOf(name: string): string {
  return `${ALL}/${encodeURIComponent(name)}`;
}
