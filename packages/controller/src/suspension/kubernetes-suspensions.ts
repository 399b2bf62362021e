import type { Cutoff, SuspensionObject, SuspensionTarget } from '@weir/model';
import { ApiError } from '../kubernetes/api-error.ts';
import { FIELD_MANAGER, type Json, type KubeApi } from '../kubernetes/kube-api.ts';
import { projectSuspension } from '../snapshot/suspension.ts';
import type { SuspensionWriter } from './suspension-writer.ts';

const ALL = '/apis/weir.dev/v1alpha1/suspensions';
const TIMEOUT_MS = 5_000;

export class KubernetesSuspensions implements SuspensionWriter {
  readonly #api: Pick<KubeApi, 'request'>;

  constructor({ api }: { readonly api: Pick<KubeApi, 'request'> }) {
    this.#api = api;
  }

  async make(cutoff: Cutoff, signal: AbortSignal): Promise<SuspensionObject> {
    try {
      const query = { fieldManager: FIELD_MANAGER };
      const request = {
        method: 'POST',
        path: ALL,
        query,
        body: objectFor(cutoff),
        timeoutMs: TIMEOUT_MS,
        signal,
      } as const;
      return read(await this.#api.request(request));
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'CONFLICT')) throw error;
    }
    const path = pathOf(cutoff.name);
    return read(await this.#api.request({ method: 'GET', path, timeoutMs: TIMEOUT_MS, signal }));
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

function objectFor({ name, target, message, until }: Cutoff): Json {
  const end = until === null ? {} : { until: new Date(until).toISOString() };
  const spec = { target: targetFor(target), message, ...end };
  return { apiVersion: 'weir.dev/v1alpha1', kind: 'Suspension', metadata: { name }, spec };
}

function targetFor(target: SuspensionTarget): Json {
  switch (target.kind) {
    case 'tenant':
      return { type: 'Tenant', tenant: target.tenant };
    case 'namespace':
      return { type: 'Namespace', namespace: target.namespace };
    case 'service':
      return { type: 'Service', namespace: target.namespace, service: target.service };
  }
}

function read(raw: Json): SuspensionObject {
  const { object, problems } = projectSuspension(raw);
  if (object === undefined) throw new ApiError('REFUSED', problems.map(({ message }) => message).join('; '));
  return object;
}

function pathOf(name: string): string {
  return `${ALL}/${encodeURIComponent(name)}`;
}
