import { MADE_BY_ANNOTATION, type Suspension, type SuspensionObject, type SuspensionTarget } from '@weir/model';
import { FIELD_MANAGER, type Json, type KubeApi, WEIR_API_PATH, WEIR_API_VERSION } from '../kubernetes/kube-api.ts';
import { KubeApiError } from '../kubernetes/kube-api-error.ts';
import { parseSuspension } from '../parse/suspension.ts';
import type { SuspensionObjectWriter } from './deferred-suspension-calls.ts';

const SUSPENSIONS_PATH = `${WEIR_API_PATH}/suspensions`;
const REQUEST_TIMEOUT_MS = 5_000;

export class KubernetesSuspensionObjects implements SuspensionObjectWriter {
  readonly #api: Pick<KubeApi, 'request'>;

  constructor({ api }: { readonly api: Pick<KubeApi, 'request'> }) {
    this.#api = api;
  }

  async getOrCreate(suspension: Suspension, signal: AbortSignal): Promise<SuspensionObject> {
    try {
      const query = { fieldManager: FIELD_MANAGER };
      const request = {
        method: 'POST',
        path: SUSPENSIONS_PATH,
        query,
        body: objectFor(suspension),
        timeoutMs: REQUEST_TIMEOUT_MS,
        signal,
      } as const;
      return parseResponse(await this.#api.request(request));
    } catch (error) {
      if (!(error instanceof KubeApiError && error.code === 'CONFLICT')) throw error;
    }
    const path = pathOf(suspension.name);
    return parseResponse(await this.#api.request({ method: 'GET', path, timeoutMs: REQUEST_TIMEOUT_MS, signal }));
  }

  async remove({ name, uid }: Suspension, signal: AbortSignal): Promise<void> {
    try {
      await this.#api.request({
        method: 'DELETE',
        path: pathOf(name),
        body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } },
        timeoutMs: REQUEST_TIMEOUT_MS,
        signal,
      });
    } catch (error) {
      if (!(error instanceof KubeApiError && (error.code === 'NOT_FOUND' || error.code === 'CONFLICT'))) throw error;
    }
  }
}

function objectFor({ name, target, message, until, madeBy, rule }: Suspension): Json {
  const end = until === null ? {} : { until: new Date(until).toISOString() };
  const spec = { target: targetFor(target), message, ...end, ...(rule !== undefined && { rule }) };
  const metadata = { name, ...(madeBy === undefined ? {} : { annotations: { [MADE_BY_ANNOTATION]: madeBy } }) };
  return { apiVersion: WEIR_API_VERSION, kind: 'Suspension', metadata, spec };
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

function parseResponse(raw: Json): SuspensionObject {
  const { object, problems } = parseSuspension(raw);
  if (object === undefined) throw new KubeApiError('REFUSED', problems.map(({ message }) => message).join('; '));
  return object;
}

function pathOf(name: string): string {
  return `${SUSPENSIONS_PATH}/${encodeURIComponent(name)}`;
}
