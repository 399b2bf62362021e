// Writes the Suspension object first and the store's entry second, so that a failure in between leaves no entry without an object. If the
// API server is unreachable, writes only the entry, with a random id. Later the controller creates the object and replaces the entry. Each
// user applies with a different field manager, so that the API server refuses to change another user's Suspension unless the request sets
// `replace`.
import type { KubeConfig } from '@kubernetes/client-node';
import type { Suspension } from '@weir/model';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import type { SuspensionStore } from '@weir/store';
import { ApiError } from '../api/api-error.ts';
import { ApiClient, type ApiRequest, type ApiResponse, statusMessageOf } from '../kubernetes/api-client.ts';
import { storeSuspensionWriter } from './store-suspension-writer.ts';
import {
  SUSPENSION_RESOURCE,
  type SuspensionManifest,
  suspensionFieldManagerFor,
  suspensionForObject,
  suspensionNameFor,
  suspensionObjectFor,
  untilOfObject,
} from './suspension-object.ts';
import type { SuspensionRequest, SuspensionWriter } from './suspension-writer.ts';
import { alreadySuspendedError, releaseBy } from './suspension-writer.ts';

export interface KubernetesSuspensionWriterOptions {
  readonly kubeconfig: KubeConfig;
  readonly suspensionStore: SuspensionStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Time after which the API server counts as unreachable. The time is short, because a Suspension must take effect soon even without the API
 * server.
 */
const API_TIMEOUT_MS = 3_000;

export function kubernetesSuspensionWriter(options: KubernetesSuspensionWriterOptions): SuspensionWriter {
  const { kubeconfig, suspensionStore, log } = options;
  const api = new ApiClient({ kubeconfig, timeoutMs: API_TIMEOUT_MS });
  const storeWriter = storeSuspensionWriter(options);
  return {
    async suspend(request) {
      let suspension: Suspension;
      try {
        suspension = await applySuspension(api, request);
      } catch (error) {
        if (!(error instanceof ApiServerUnreachableError)) throw error;
        log.warn({ reason: error.message }, 'failed to reach the API server; writing the Suspension to the store only');
        return storeWriter.suspend(request);
      }
      await putSuspension(suspensionStore, suspension);
      return suspension;
    },
    async resume(suspension, requestedBy) {
      if (suspension.origin.kind === 'kubernetes') await deleteSuspension(api, suspension);
      await suspensionStore.remove(suspension.uid, releaseBy(requestedBy, suspension));
    },
  };
}

async function putSuspension(suspensionStore: SuspensionStore, suspension: Suspension): Promise<void> {
  try {
    await suspensionStore.put(suspension);
  } catch (error) {
    const message = `Suspension "${suspension.name}" was created but has no effect yet, because the console failed to write it to the store (${errorMessage(error)}); it takes effect once the store is reachable`;
    throw new ApiError('StoreAway', message, { cause: error });
  }
}

const { group, version, plural } = SUSPENSION_RESOURCE;
const pathOf = (name: string): string => `/apis/${group}/${version}/${plural}/${name}`;

async function applySuspension(api: ApiClient, request: SuspensionRequest): Promise<Suspension> {
  const name = suspensionNameFor(request.target);
  const { until, replace, requestedBy } = request;
  if (replace && until === null) await removeUntil(api, name);
  const query = new URLSearchParams({ fieldManager: suspensionFieldManagerFor(requestedBy), force: String(replace) });
  const response = await sendRequest(api, {
    method: 'PATCH',
    path: `${pathOf(name)}?${query}`,
    body: suspensionObjectFor(name, request),
    contentType: 'application/apply-patch+yaml',
  });
  refuseFailedChange(response, name);
  const object = response.body as SuspensionManifest;
  // If the request has no `until`, server-side apply keeps an `until` that another user set.
  if (untilOfObject(object) !== until) throw alreadySuspendedError(name, 'and another user set its end');
  return suspensionForObject(object, request);
}

/** Removes `spec.until` with a merge patch, because server-side apply cannot remove a field that another user set. */
async function removeUntil(api: ApiClient, name: string): Promise<void> {
  const response = await sendRequest(api, {
    method: 'PATCH',
    path: pathOf(name),
    body: { spec: { until: null } },
    contentType: 'application/merge-patch+json',
  });
  if (response.status !== 404) refuseFailedChange(response, name);
}

function refuseFailedChange(response: ApiResponse, name: string): void {
  if (response.status < 300) return;
  if (response.status !== 409) throw refusedError(response, `create Suspension "${name}"`);
  throw alreadySuspendedError(name, `and another user created it (${reasonOf(response)})`);
}

async function deleteSuspension(api: ApiClient, { name, uid }: Suspension): Promise<void> {
  try {
    const response = await sendRequest(api, {
      method: 'DELETE',
      path: pathOf(name),
      body: { preconditions: { uid } },
    });
    // 404: the object is gone. 409: the object is gone, and a new object has its name.
    if (response.status < 300 || response.status === 404 || response.status === 409) return;
    throw refusedError(response, `delete Suspension "${name}"`);
  } catch (error) {
    if (!(error instanceof ApiServerUnreachableError)) throw error;
    const message = `Suspension "${name}" cannot be deleted, because the API server is unreachable; once it is reachable, try again or use kubectl delete suspension ${name}`;
    throw new ApiError('KubernetesAway', message, { cause: error });
  }
}

/** Thrown if the API server sent no response, a response that is not JSON, or a status that means "try again later" (429 or 5xx). */
class ApiServerUnreachableError extends Error {}

/**
 * Resolves with the response, even if the API server refuses the request. Rejects with `ApiServerUnreachableError` if there is no usable
 * response.
 */
async function sendRequest(api: ApiClient, request: ApiRequest): Promise<ApiResponse> {
  const response = await api.send(request).catch((error) => {
    throw new ApiServerUnreachableError(errorMessage(error), { cause: error });
  });
  const { status, body } = response;
  if (status >= 500 || status === 429) throw new ApiServerUnreachableError(`HTTP ${status}: ${reasonOf(response)}`);
  if (status < 300 && body === undefined) throw new ApiServerUnreachableError('the response is not JSON');
  return response;
}

function refusedError(response: ApiResponse, action: string): ApiError {
  const reason =
    response.status === 404
      ? 'the custom resource is not installed (kubectl get crd suspensions.weir.dev)'
      : `HTTP ${response.status}: ${reasonOf(response)}`;
  return new ApiError('KubernetesRefused', `the API server does not let the console ${action}: ${reason}`);
}

function reasonOf(response: ApiResponse): string {
  return statusMessageOf(response) ?? 'the response gives no reason';
}
