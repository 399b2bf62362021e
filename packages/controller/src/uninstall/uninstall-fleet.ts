import { EMPTY_TABLE, type TablePosition } from '@weir/model';
import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import { type Store, TablePublisher } from '@weir/store';
import { forEachConcurrently } from '../kubernetes/concurrent-calls.ts';
import type { KubeApi } from '../kubernetes/kube-api.ts';
import { KubeApiError } from '../kubernetes/kube-api-error.ts';
import { listPages } from '../kubernetes/list-pages.ts';
import { removeFinalizers, removeStatus } from './remove-status.ts';

// What is taken back before a fleet is deleted for good, in the order in which nobody is lied to.
export interface UninstallOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly fleet: string;
  readonly loadBalancerClass: string;
  /** Of the controllers; absent: whoever calls has stopped them. */
  readonly deployment?: DeploymentName | undefined;
  /** Where the Lease is. */
  readonly namespace: string;
  /** Undefined: it is not there, and the proxies keep what they have until they are deleted. */
  readonly store: Store | undefined;
  /** How long pods of controllers are waited for. */
  readonly podTimeoutMs?: number;
  /** How long proxies are waited for. */
  readonly proxyTimeoutMs?: number;
  /** Of lists; fewer in tests. */
  readonly pageSize?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const DEFAULT_PROXY_TIMEOUT_MS = 15_000;
const MAX_CONCURRENT_DELETIONS = 8;

/**
 * Stops the controllers, takes addresses and conditions back, lets the proxies close what they have open, takes finalizers off, deletes
 * TenantUsages and the Lease. To be called again when it failed: what is done already is left out. Rejects when something of it could
 * not be done that tenants would see.
 */
export async function uninstallFleet(retirement: UninstallOptions): Promise<void> {
  const { api, deployment, log, signal, namespace, fleet } = retirement;
  if (deployment !== undefined) {
    const pods = await stopDeployment(deployment, retirement).catch(ignoreNotFound);
    if (pods === undefined) log.warn({ ...deployment }, 'there is no such Deployment: no controllers were stopped');
    else if (pods.length === 0) log.info({ ...deployment }, 'controllers stopped');
    else log.warn({ pods }, 'pods of controllers do not end, as on a node that is lost; going on without them');
  }
  await removeStatus(retirement);
  await closeListeners(retirement);
  await removeFinalizers(retirement);
  const usages = { path: '/apis/weir.dev/v1alpha1/tenantusages', query: { fieldSelector: `metadata.name=${fleet}` } };
  for await (const page of listPages(usages, retirement)) {
    await forEachConcurrently(page, { concurrency: MAX_CONCURRENT_DELETIONS, signal }, async (item) => {
      const { namespace: of } = item.metadata as { namespace: string };
      await deleteIfPresent(api, `/apis/weir.dev/v1alpha1/namespaces/${of}/tenantusages/${fleet}`);
    });
  }
  await deleteIfPresent(api, `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/weir-controller-${fleet}`);
  log.info({ fleet }, 'what this fleet said is taken back');
}

/** Not seen by tenants, whose addresses are gone by now, and the proxies are deleted next: that Redis is away keeps nothing up. */
async function closeListeners({
  store,
  clock,
  log,
  signal,
  proxyTimeoutMs = DEFAULT_PROXY_TIMEOUT_MS,
}: UninstallOptions): Promise<void> {
  if (store === undefined) return;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(proxyTimeoutMs)]);
  try {
    await publishEmptyTable(store, { clock, log, signal: limit });
  } catch (error) {
    signal.throwIfAborted();
    const reason = limit.aborted ? 'they have not answered in time' : errorMessage(error);
    log.warn({ reason }, 'not every proxy was told to close its listeners; they end with the release');
  }
}

async function deleteIfPresent(api: UninstallOptions['api'], path: string): Promise<void> {
  await api.request({ method: 'DELETE', path }).catch(ignoreNotFound);
}

function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof KubeApiError && error.code === 'NOT_FOUND')) throw error;
}

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

const HEARTBEAT_POLL_MS = 200;

/**
 * Publishes a table without anything in it, and waits until every proxy that beats has applied it: then none listens, and none finds on
 * its disk what it once served. Rejects when the store is away.
 */
export async function publishEmptyTable(
  store: Store,
  { clock, log, signal }: { readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const publisher = new TablePublisher({ store: store.table });
  await publisher.becomeLeader();
  const outcome = await publisher.publish(EMPTY_TABLE);
  if (outcome.kind === 'not-leader') throw new Error('another controller has taken the lead meanwhile');
  for (;;) {
    const behind = await nodesBehind(store, outcome.position);
    if (behind.length === 0) return;
    log.info({ nodes: behind }, 'waiting for proxies to close their listeners');
    await wait(clock, HEARTBEAT_POLL_MS, signal);
  }
}

async function nodesBehind({ heartbeats }: Store, { id }: TablePosition): Promise<readonly string[]> {
  const beating = await heartbeats.list();
  return beating.filter(({ applied }) => applied?.id !== id).map(({ node }) => node);
}
