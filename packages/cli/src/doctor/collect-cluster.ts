import { KubeApi, type loadKubeConfig, probeServer } from '@weir/controller';
import { type Clock, errorMessage, WeirError } from '@weir/runtime';
import {
  type Fact,
  type Facts,
  knownFact,
  LEASE_PREFIX,
  type LeaseFact,
  type NodeFact,
  POOL_KEY,
  type PolicyFact,
  type ServiceFact,
  type Timed,
  type UnknownFact,
  unknownFact,
} from './facts.ts';
import { API_SERVER_UNAVAILABLE } from './finding.ts';

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

/** Collects the facts about the cluster, and changes nothing. Sends no further request if the first request fails. */
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

/** Returns facts about the cluster that are all unknown. Only the fact `server` contains the reason; the other facts refer to `server`. */
export function unknownCluster(server: UnknownFact): ClusterFacts {
  const unavailable = API_SERVER_UNAVAILABLE;
  return {
    server,
    customResources: unavailable,
    serviceRanges: unavailable,
    leases: unavailable,
    nodes: unavailable,
    services: unavailable,
    policies: unavailable,
  };
}

/**
 * Lists the Leases of controllers. If the fleet's namespace is known, reads only the fleet's Lease, so that the command works with the
 * controller's account, which has no right to list Leases.
 */
async function listControllerLeases(
  api: KubeApi,
  { fleet, namespace, signal }: CollectClusterOptions,
): Promise<readonly LeaseFact[]> {
  if (namespace === undefined) {
    return listAllPages(api, { path: '/apis/coordination.k8s.io/v1/leases', signal, read: readLease });
  }
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${LEASE_PREFIX}${fleet}`;
  const raw = await undefinedIfNotFound(api.request({ method: 'GET', path, signal }));
  const lease = raw === undefined ? undefined : readLease(raw);
  return lease === undefined ? [] : [lease];
}

/** Returns the ranges of cluster IPs, or an empty list if the API server does not serve ServiceCIDR (before Kubernetes 1.33). */
async function listServiceRanges(api: KubeApi, signal: AbortSignal): Promise<readonly string[]> {
  const path = '/apis/networking.k8s.io/v1/servicecidrs';
  return (await undefinedIfNotFound(listAllPages(api, { path, signal, read: readServiceRanges })))?.flat() ?? [];
}

async function undefinedIfNotFound<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof WeirError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  }
}

/**
 * Returns Weir's resources from the discovery document. Every user may read this document, but not every user may read
 * CustomResourceDefinitions.
 */
async function listServedResources(api: KubeApi, signal: AbortSignal): Promise<readonly string[]> {
  const discovery = (await undefinedIfNotFound(api.request({ method: 'GET', path: WEIR_API_PATH, signal }))) as
    | { resources?: { name: string }[] }
    | undefined;
  return (discovery?.resources ?? []).map(({ name }) => name);
}

/**
 * Resolves with the collected fact, or with an unknown fact if `collect` fails, so that the other checks still run. Rejects only if
 * `signal` is aborted.
 */
export async function attemptFact<T>(signal: AbortSignal, collect: () => Promise<T>): Promise<Fact<T>> {
  try {
    return knownFact(await collect());
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return unknownFact('failed', errorMessage(error));
  }
}

export async function withTimes<T>(clock: Clock, request: () => Promise<T>): Promise<Timed<T>> {
  const askedAt = clock.now();
  const response = await request();
  return { ...response, askedAt, answeredAt: clock.now() };
}

const PAGE_LIMIT = '500';

/** Lists every object of a kind, page by page. `read` extracts what the checks need, because a cluster may have thousands of objects. */
export async function listAllPages<T>(
  api: Pick<KubeApi, 'request'>,
  { path, signal, read }: { readonly path: string; readonly signal: AbortSignal; read(raw: unknown): T | undefined },
): Promise<readonly T[]> {
  const objects: T[] = [];
  let continueToken: string | undefined;
  do {
    const query = { limit: PAGE_LIMIT, ...(continueToken !== undefined && { continue: continueToken }) };
    const { items, metadata } = (await api.request({ method: 'GET', path, query, signal })) as ListPage;
    for (const item of items ?? []) {
      const object = read(item);
      if (object !== undefined) objects.push(object);
    }
    continueToken = metadata?.continue || undefined;
  } while (continueToken !== undefined);
  return objects;
}

interface ListPage {
  readonly items?: readonly unknown[] | null;
  readonly metadata?: { readonly continue?: string };
}

// The shapes of Kubernetes objects. The API server has checked the types of all fields, but optional fields may be absent.
interface RawMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
}

interface RawCondition {
  readonly type: string;
  readonly status: string;
}

interface RawNode {
  readonly metadata: RawMetadata;
  readonly spec?: { readonly unschedulable?: boolean; readonly podCIDR?: string; readonly podCIDRs?: string[] };
  readonly status?: { readonly addresses?: { type: string; address: string }[]; readonly conditions?: RawCondition[] };
}

export function readNode(raw: unknown): NodeFact {
  const { metadata, spec = {}, status = {} } = raw as RawNode;
  const ready = (status.conditions ?? []).find(({ type }) => type === 'Ready');
  return {
    name: metadata.name,
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    internalIPs: (status.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address),
    podCIDRs: spec.podCIDRs ?? (spec.podCIDR === undefined ? [] : [spec.podCIDR]),
    isCordoned: spec.unschedulable === true,
    isReady: ready?.status === 'True',
    isDeleting: metadata.deletionTimestamp !== undefined,
  };
}

interface RawService {
  readonly metadata: RawMetadata;
  readonly spec: {
    readonly type?: string;
    readonly loadBalancerClass?: string;
    readonly ports?: { readonly port: number; readonly nodePort?: number }[];
  };
  readonly status?: {
    readonly conditions?: RawCondition[];
    readonly loadBalancer?: { readonly ingress?: { readonly ip?: string; readonly ipMode?: string }[] };
  };
}

/** Returns the facts about a Service, or undefined if the Service is not of type LoadBalancer. */
export function readService(raw: unknown): ServiceFact | undefined {
  const { metadata, spec, status = {} } = raw as RawService;
  if (spec.type !== 'LoadBalancer') return undefined;
  const { namespace = '', name, annotations = {}, creationTimestamp, deletionTimestamp } = metadata;
  return {
    namespace,
    name,
    loadBalancerClass: spec.loadBalancerClass ?? null,
    ignored: annotations['weir.dev/ignore'] === 'true',
    pool: annotations[POOL_KEY] ?? null,
    createdAt: parseTime(creationTimestamp),
    isDeleting: deletionTimestamp !== undefined,
    ports: (spec.ports ?? []).map(({ port }) => port),
    nodePorts: (spec.ports ?? []).flatMap(({ nodePort = 0 }) => (nodePort > 0 ? [nodePort] : [])),
    ingress: (status.loadBalancer?.ingress ?? []).map(({ ip = null, ipMode = null }) => ({ ip, ipMode })),
    hasWeirCondition: (status.conditions ?? []).some(({ type }) => type.startsWith('weir.dev/')),
  };
}

interface RawLease {
  readonly metadata: RawMetadata;
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly renewTime?: string;
    readonly leaseDurationSeconds?: number;
  };
}

/** Returns the facts about a Lease of a Weir controller, or undefined for any other Lease, such as a kubelet's. */
export function readLease(raw: unknown): LeaseFact | undefined {
  const { metadata, spec = {} } = raw as RawLease;
  if (!metadata.name.startsWith(LEASE_PREFIX)) return undefined;
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    holder: spec.holderIdentity || null,
    renewedAt: parseTime(spec.renewTime),
    durationMs: (spec.leaseDurationSeconds ?? 0) * 1_000,
  };
}

export function readServiceRanges(raw: unknown): readonly string[] {
  return (raw as { readonly spec?: { readonly cidrs?: string[] } }).spec?.cidrs ?? [];
}

export function readPolicy(raw: unknown): PolicyFact {
  const { metadata, spec = {} } = raw as {
    readonly metadata: RawMetadata;
    readonly spec?: { readonly pools?: string[] };
  };
  return { name: metadata.name, pools: spec.pools ?? [] };
}

function parseTime(text: string | undefined): number | null {
  const ms = Date.parse(text ?? '');
  return Number.isNaN(ms) ? null : ms;
}
