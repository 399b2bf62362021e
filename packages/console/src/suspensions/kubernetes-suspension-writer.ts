// The API server keeps who made what apart by the field manager: each person has one, and may change only what is their own.
// The object first, the cut-off second: whoever reads the object sees why, and the cut-off is never without its reason.
// While the API server is away the cut-off comes alone, under the id of the request; the controller creates the object once
// the API server is back, and puts its cut-off in place of the request's.
import {
  ApiException,
  CustomObjectsApi,
  createConfiguration,
  type KubeConfig,
  type Middleware,
  PatchStrategy,
  ServerConfiguration,
  setHeaderOptions,
} from '@kubernetes/client-node';
import type { Suspension } from '@weir/model';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import type { SuspensionStore } from '@weir/store';
import { ApiError } from '../api/api-error.ts';
import { storeSuspensionWriter } from './store-suspension-writer.ts';
import {
  cutoffForObject,
  SUSPENSION_RESOURCE,
  suspensionFieldManagerFor,
  suspensionNameFor,
  suspensionObjectFor,
  untilOfObject,
} from './suspension-object.ts';
import type { SuspensionRequest, SuspensionWriter } from './suspension-writer.ts';
import { alreadySuspendedError } from './suspension-writer.ts';

export interface KubernetesSuspensionWriterOptions {
  readonly kubeconfig: KubeConfig;
  readonly cutoffs: SuspensionStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Somebody waits for the cut-off: an API server that does not answer by then counts as away. */
const API_TIMEOUT_MS = 3_000;

export function kubernetesSuspensionWriter(options: KubernetesSuspensionWriterOptions): SuspensionWriter {
  const { cutoffs, log } = options;
  const api = createCustomObjectsApi(options.kubeconfig);
  const alone = storeSuspensionWriter(options);
  return {
    async suspend(request) {
      const applied = await applySuspension(api, request);
      if (applied.kind === 'away') {
        log.warn({ reason: applied.message }, 'the API server is away; the cut-off goes to the store alone');
        return alone.suspend(request);
      }
      await putCutoff(cutoffs, applied.cutoff);
      return applied.cutoff;
    },
    async resume(cutoff) {
      if (cutoff.origin.kind === 'kubernetes') await deleteSuspension(api, cutoff);
      await cutoffs.remove(cutoff.uid);
    },
  };
}

async function putCutoff(cutoffs: SuspensionStore, cutoff: Suspension): Promise<void> {
  try {
    await cutoffs.put(cutoff);
  } catch (error) {
    const message = `Suspension "${cutoff.name}" was created, but the store does not take the cut-off (${errorMessage(error)}); proxies learn of it once the store answers again`;
    throw new ApiError('StoreAway', message, { cause: error });
  }
}

type ApplyResult =
  | { readonly kind: 'applied'; readonly cutoff: Suspension }
  | { readonly kind: 'away'; readonly message: string };

async function applySuspension(api: CustomObjectsApi, request: SuspensionRequest): Promise<ApplyResult> {
  const name = suspensionNameFor(request.target);
  const { until, replace, requestedBy } = request;
  const applying = {
    ...SUSPENSION_RESOURCE,
    name,
    body: suspensionObjectFor(name, request),
    fieldManager: suspensionFieldManagerFor(requestedBy),
  };
  try {
    if (replace && until === null) await removeUntil(api, name);
    const object = await api.patchClusterCustomObject(
      { ...applying, force: replace },
      setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply),
    );
    // An end that somebody else has given stays when nobody asks for another.
    if (untilOfObject(object) !== until) throw alreadySuspendedError(name, 'and somebody else has said when it ends');
    return { kind: 'applied', cutoff: cutoffForObject(object, request) };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (isApiServerAway(error)) return { kind: 'away', message: errorMessage(error) };
    if (error instanceof ApiException && error.code === 409) {
      throw alreadySuspendedError(name, `made by somebody else (${statusMessageOf(error)})`, { cause: error });
    }
    throw refusedError(error, `create Suspension "${name}"`);
  }
}

/** Applying takes away only what is one's own. */
async function removeUntil(api: CustomObjectsApi, name: string): Promise<void> {
  try {
    await api.patchClusterCustomObject(
      { ...SUSPENSION_RESOURCE, name, body: { spec: { until: null } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
  } catch (error) {
    if (!(error instanceof ApiException && error.code === 404)) throw error;
  }
}

async function deleteSuspension(api: CustomObjectsApi, { name, uid }: Suspension): Promise<void> {
  try {
    await api.deleteClusterCustomObject({ ...SUSPENSION_RESOURCE, name, body: { preconditions: { uid } } });
  } catch (error) {
    // 404: already gone; 409: gone too, and another of that name is not the one that was asked about.
    if (error instanceof ApiException && (error.code === 404 || error.code === 409)) return;
    if (!isApiServerAway(error)) throw refusedError(error, `delete Suspension "${name}"`);
    const message = `Suspension "${name}" cannot be deleted while the API server is away; try again, or once it is back: kubectl delete suspension ${name}`;
    throw new ApiError('KubernetesAway', message, { cause: error });
  }
}

/** No answer, or an answer that says "not now"; every other refusal is about the request. */
function isApiServerAway(error: unknown): boolean {
  return !(error instanceof ApiException) || error.code >= 500 || error.code === 429;
}

function refusedError(error: unknown, what: string): ApiError {
  const code = error instanceof ApiException ? error.code : 0;
  const why =
    code === 404
      ? 'the custom resource is not installed (kubectl get crd suspensions.weir.dev)'
      : `HTTP ${code}: ${statusMessageOf(error)}`;
  return new ApiError('KubernetesRefused', `the API server does not let the console ${what}: ${why}`, { cause: error });
}

/** The `message` of the Status object that came with the refusal. */
function statusMessageOf(error: unknown): string {
  const body = error instanceof ApiException ? error.body : undefined;
  try {
    const status: unknown = typeof body === 'string' ? JSON.parse(body) : body;
    if (typeof status === 'object' && status !== null && 'message' in status) return String(status.message);
  } catch {
    // not JSON: a proxy in between answered
  }
  return 'it does not say why';
}

function createCustomObjectsApi(kubeconfig: KubeConfig): CustomObjectsApi {
  const server = kubeconfig.getCurrentCluster()?.server ?? '';
  const limited: Middleware = {
    pre: async (context) => {
      context.setSignal(AbortSignal.timeout(API_TIMEOUT_MS));
      return context;
    },
    post: async (context) => context,
  };
  return new CustomObjectsApi(
    createConfiguration({
      baseServer: new ServerConfiguration(server, {}),
      authMethods: { default: kubeconfig },
      promiseMiddleware: [limited],
    }),
  );
}
