import { type Clock, wait } from '@weir/runtime';
import type { KubeApi } from '../kubernetes/kube-api.ts';

export interface DeploymentName {
  readonly namespace: string;
  readonly name: string;
}

export interface StopOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long its pods are waited for; default 60 s. */
  readonly podTimeoutMs?: number;
}

interface Scale {
  readonly status?: { readonly selector?: string };
}

interface Pod {
  readonly metadata: { readonly name: string };
}

const POD_POLL_MS = 500;
/** Longer than a pod is given to end. One of a node that is lost stays for as long as its node does. */
const DEFAULT_POD_TIMEOUT_MS = 60_000;

/**
 * Resolves when no pod of the Deployment is left: none is running that could write again what is taken back. Returns the names of those
 * that are there when their time is over, as of a node that is lost.
 */
export async function stopDeployment(
  { namespace, name }: DeploymentName,
  { api, clock, signal, podTimeoutMs = DEFAULT_POD_TIMEOUT_MS }: StopOptions,
): Promise<readonly string[]> {
  const until = clock.monotonic() + podTimeoutMs;
  const scale = (await api.request({
    method: 'PATCH',
    path: `/apis/apps/v1/namespaces/${namespace}/deployments/${name}/scale`,
    contentType: 'application/merge-patch+json',
    body: { spec: { replicas: 0 } },
    signal,
  })) as Scale;
  const labelSelector = scale.status?.selector ?? '';
  // Without one it would be all pods of the namespace.
  if (labelSelector === '') throw new Error(`Deployment ${namespace}/${name} has no selector`);
  for (;;) {
    const { items } = (await api.request({
      method: 'GET',
      path: `/api/v1/namespaces/${namespace}/pods`,
      query: { labelSelector },
      signal,
    })) as { items?: readonly Pod[] };
    const left = (items ?? []).map(({ metadata }) => metadata.name);
    if (left.length === 0 || clock.monotonic() > until) return left;
    await wait(clock, POD_POLL_MS, signal);
  }
}
