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
import type { Cutoff } from '@weir/model';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import type { CutoffStore } from '@weir/store';
import { ApiError } from '../api/api-error.ts';
import { alreadySuspended } from './already-suspended.ts';
import { storeSuspensions } from './store-suspensions.ts';
import { suspensionNameFor } from './suspension-name.ts';
import { cutoffForObject, fieldManagerFor, SUSPENSIONS, suspensionObjectFor, untilOf } from './suspension-object.ts';
import type { SuspensionRequest, SuspensionWriter } from './suspension-writer.ts';

export interface KubernetesSuspensionsOptions {
  readonly kubeconfig: KubeConfig;
  readonly cutoffs: CutoffStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Somebody waits for the cut-off: an API server that does not answer by then counts as away. */
const TIMEOUT_MS = 3_000;

export function kubernetesSuspensions(options: KubernetesSuspensionsOptions): SuspensionWriter {
  const { cutoffs, log } = options;
  const api = apiFor(options.kubeconfig);
  const alone = storeSuspensions(options);
  return {
    async suspend(request) {
      const applied = await apply(api, request);
      if (applied.kind === 'away') {
        log.warn({ reason: applied.message }, 'the API server is away; the cut-off goes to the store alone');
        return alone.suspend(request);
      }
      await putBeside(cutoffs, applied.cutoff);
      return applied.cutoff;
    },
    async resume(cutoff) {
      if (cutoff.origin.kind === 'kubernetes') await remove(api, cutoff);
      await cutoffs.remove(cutoff.uid);
    },
  };
}

async function putBeside(cutoffs: CutoffStore, cutoff: Cutoff): Promise<void> {
  try {
    await cutoffs.put(cutoff);
  } catch (error) {
    const message = `Suspension "${cutoff.name}" was created, but the store does not take the cut-off (${errorMessage(error)}); proxies learn of it once the store answers again`;
    throw new ApiError('StoreAway', message, { cause: error });
  }
}

type Applied =
  | { readonly kind: 'applied'; readonly cutoff: Cutoff }
  | { readonly kind: 'away'; readonly message: string };

async function apply(api: CustomObjectsApi, request: SuspensionRequest): Promise<Applied> {
  const name = suspensionNameFor(request.target);
  const { until, isReplacing, by } = request;
  const applying = {
    ...SUSPENSIONS,
    name,
    body: suspensionObjectFor(name, request),
    fieldManager: fieldManagerFor(by),
  };
  try {
    if (isReplacing && until === null) await takeEndOff(api, name);
    const object = await api.patchClusterCustomObject(
      { ...applying, force: isReplacing },
      setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply),
    );
    // An end that somebody else has given stays when nobody asks for another.
    if (untilOf(object) !== until) throw alreadySuspended(name, 'and somebody else has said when it ends');
    return { kind: 'applied', cutoff: cutoffForObject(object, request) };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (isAway(error)) return { kind: 'away', message: errorMessage(error) };
    if (error instanceof ApiException && error.code === 409) {
      throw alreadySuspended(name, `made by somebody else (${reasonOf(error)})`, { cause: error });
    }
    throw refusedBy(error, `create Suspension "${name}"`);
  }
}

/** Applying takes away only what is one's own. */
async function takeEndOff(api: CustomObjectsApi, name: string): Promise<void> {
  try {
    await api.patchClusterCustomObject(
      { ...SUSPENSIONS, name, body: { spec: { until: null } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
  } catch (error) {
    if (!(error instanceof ApiException && error.code === 404)) throw error;
  }
}

async function remove(api: CustomObjectsApi, { name, uid }: Cutoff): Promise<void> {
  try {
    await api.deleteClusterCustomObject({ ...SUSPENSIONS, name, body: { preconditions: { uid } } });
  } catch (error) {
    // 404: already gone; 409: gone too, and another of that name is not the one that was asked about.
    if (error instanceof ApiException && (error.code === 404 || error.code === 409)) return;
    if (!isAway(error)) throw refusedBy(error, `delete Suspension "${name}"`);
    const message = `Suspension "${name}" cannot be deleted while the API server is away; try again, or once it is back: kubectl delete suspension ${name}`;
    throw new ApiError('KubernetesAway', message, { cause: error });
  }
}

/** No answer, or an answer that says "not now"; every other refusal is about the request. */
function isAway(error: unknown): boolean {
  return !(error instanceof ApiException) || error.code >= 500 || error.code === 429;
}

function refusedBy(error: unknown, what: string): ApiError {
  const code = error instanceof ApiException ? error.code : 0;
  const why =
    code === 404
      ? 'the custom resource is not installed (kubectl get crd suspensions.weir.dev)'
      : `HTTP ${code}: ${reasonOf(error)}`;
  return new ApiError('KubernetesRefused', `the API server does not let the console ${what}: ${why}`, { cause: error });
}

/** The `message` of the Status object that came with the refusal. */
function reasonOf(error: unknown): string {
  const body = error instanceof ApiException ? error.body : undefined;
  try {
    const status: unknown = typeof body === 'string' ? JSON.parse(body) : body;
    if (typeof status === 'object' && status !== null && 'message' in status) return String(status.message);
  } catch {
    // not JSON: a proxy in between answered
  }
  return 'it does not say why';
}

function apiFor(kubeconfig: KubeConfig): CustomObjectsApi {
  const server = kubeconfig.getCurrentCluster()?.server ?? '';
  const limited: Middleware = {
    pre: async (context) => {
      context.setSignal(AbortSignal.timeout(TIMEOUT_MS));
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
