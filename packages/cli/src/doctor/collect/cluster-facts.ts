import { KubeApi, type loadKubeConfig, probeServer } from '@weir/controller';
import { type Clock, WeirError } from '@weir/runtime';
import type { Fact, UnknownFact } from '../fact.ts';
import type { Facts, LeaseFact } from '../facts.ts';
import { API_SERVER_UNAVAILABLE } from '../finding.ts';
import { attemptFact } from './attempt.ts';
import { listAllPages } from './list-all.ts';
import { readLease, readNode, readPolicy, readService, readServiceRanges } from './read-objects.ts';
import { withTimes } from './timed.ts';

export type ClusterFacts = Pick<
  Facts,
  'server' | 'customResources' | 'serviceRanges' | 'leases' | 'nodes' | 'services' | 'policies'
>;

const API_TIMEOUT_MS = 10_000;
const WEIR_API_PATH = '/apis/weir.dev/v1alpha1';

interface CollectClusterOptions {
  readonly kubeConfig: ReturnType<typeof loadKubeConfig>;
  readonly fleet: string;
  readonly namespace: string | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Reads, and changes nothing. An API server that does not answer is asked once, not once for each kind. */
export async function collectCluster(options: CollectClusterOptions): Promise<ClusterFacts> {
  const { kubeConfig, clock, signal } = options;
  const server = await attemptFact(signal, () => withTimes(clock, () => probeServer(kubeConfig, signal)));
  if (server.kind === 'unknown') return unknownCluster(server);
  const api = new KubeApi(kubeConfig, { timeoutMs: API_TIMEOUT_MS });
  const list = <T>(path: string, read: (raw: unknown) => T | undefined): Promise<Fact<readonly T[]>> =>
    attemptFact(signal, () => listAllPages(api, { path, signal, read }));
  try {
    const [customResources, serviceRanges, leases, nodes, services, policies] = await Promise.all([
      attemptFact(signal, () => listServedResources(api, signal)),
      attemptFact(signal, () => listServiceRanges(api, signal)),
      attemptFact(signal, () => listControllerLeases(api, options)),
      list('/api/v1/nodes', readNode),
      list('/api/v1/services', readService),
      list(`${WEIR_API_PATH}/tenantpolicies`, readPolicy),
    ]);
    return { server, customResources, serviceRanges, leases, nodes, services, policies };
  } finally {
    api.close();
  }
}

/** Nothing is known of the cluster, because of this. */
export function unknownCluster(server: UnknownFact): ClusterFacts {
  const rest = API_SERVER_UNAVAILABLE;
  return {
    server,
    customResources: rest,
    serviceRanges: rest,
    leases: rest,
    nodes: rest,
    services: rest,
    policies: rest,
  };
}

/** The controller may read its own alone. */
async function listControllerLeases(
  api: KubeApi,
  { fleet, namespace, signal }: CollectClusterOptions,
): Promise<readonly LeaseFact[]> {
  if (namespace === undefined) {
    return listAllPages(api, { path: '/apis/coordination.k8s.io/v1/leases', signal, read: readLease });
  }
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/weir-controller-${fleet}`;
  const raw = await undefinedIfNotFound(api.request({ method: 'GET', path, signal }));
  const lease = raw === undefined ? undefined : readLease(raw);
  return lease === undefined ? [] : [lease];
}

/** None where the kind is not served yet. */
async function listServiceRanges(api: KubeApi, signal: AbortSignal): Promise<readonly string[]> {
  const path = '/apis/networking.k8s.io/v1/servicecidrs';
  return (await undefinedIfNotFound(listAllPages(api, { path, signal, read: readServiceRanges })))?.flat() ?? [];
}

async function undefinedIfNotFound<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof WeirError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  }
}

/** What discovery tells, which everybody may read, unlike the definitions. */
async function listServedResources(api: KubeApi, signal: AbortSignal): Promise<readonly string[]> {
  const found = (await undefinedIfNotFound(api.request({ method: 'GET', path: WEIR_API_PATH, signal }))) as
    | { resources?: { name: string }[] }
    | undefined;
  return (found?.resources ?? []).map(({ name }) => name);
}
