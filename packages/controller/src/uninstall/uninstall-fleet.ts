import { EMPTY_TABLE, type TablePosition } from '@weir/model';
import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import { type Store, TablePublisher } from '@weir/store';
import { forEachConcurrently } from '../kubernetes/concurrent-calls.ts';
import { type KubeApi, WEIR_API_PATH } from '../kubernetes/kube-api.ts';
import { KubeApiError } from '../kubernetes/kube-api-error.ts';
import { listPages } from '../kubernetes/list-pages.ts';
import { removeFinalizers, removeStatus } from './remove-status.ts';

// The cleanup before a fleet is deleted for good. Addresses are removed before the proxies stop, so that the status is correct at
// any moment.
export interface UninstallOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly fleet: string;
  readonly loadBalancerClass: string;
  /** The Deployment of the controllers; absent if the caller has stopped them. */
  readonly deployment?: DeploymentName | undefined;
  /** The namespace of the Lease that elects the leader. */
  readonly namespace: string;
  /** Undefined if the store is unreachable. Then the proxies serve until they are deleted. */
  readonly store: Store | undefined;
  /** How long to wait for the pods of the controllers to end. */
  readonly podTimeoutMs?: number;
  /** How long to wait for the proxies to close their listeners. */
  readonly proxyTimeoutMs?: number;
  /** The number of objects per page of a list. */
  readonly pageSize?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const DEFAULT_PROXY_TIMEOUT_MS = 15_000;
const MAX_CONCURRENT_DELETIONS = 8;

/**
 * Stops the controllers, removes addresses and conditions, lets the proxies close their listeners, removes finalizers, and deletes
 * TenantUsages and the Lease. Rejects if any step except the closing of listeners fails; then call `uninstallFleet` again. Completed
 * steps then have nothing left to do.
 */
export async function uninstallFleet(options: UninstallOptions): Promise<void> {
  const { api, deployment, log, signal, namespace, fleet } = options;
  if (deployment !== undefined) {
    const pods = await stopDeployment(deployment, options).catch(ignoreNotFound);
    if (pods === undefined)
      log.warn({ ...deployment }, 'found no Deployment of this name; no controllers were stopped');
    else if (pods.length === 0) log.info({ ...deployment }, 'controllers stopped');
    else log.warn({ pods }, 'controller pods did not end in time, perhaps because their node is lost; continuing');
  }
  await removeStatus(options);
  await closeListeners(options);
  await removeFinalizers(options);
  const usages = { path: `${WEIR_API_PATH}/tenantusages`, query: { fieldSelector: `metadata.name=${fleet}` } };
  for await (const page of listPages(usages, options)) {
    await forEachConcurrently(page, { concurrency: MAX_CONCURRENT_DELETIONS, signal }, async ({ metadata }) => {
      const tenantNamespace = (metadata as { namespace: string }).namespace;
      await deleteIfPresent(api, `${WEIR_API_PATH}/namespaces/${tenantNamespace}/tenantusages/${fleet}`);
    });
  }
  await deleteIfPresent(api, `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/weir-controller-${fleet}`);
  log.info({ fleet }, 'removed everything that this fleet has written');
}

/**
 * Lets the proxies close their listeners. A failure is only logged, because by now the addresses are removed from the status, and the
 * proxies are deleted next.
 */
async function closeListeners({
  store,
  clock,
  log,
  signal,
  proxyTimeoutMs = DEFAULT_PROXY_TIMEOUT_MS,
}: UninstallOptions): Promise<void> {
  if (store === undefined) return;
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(proxyTimeoutMs)]);
  try {
    await publishEmptyTable(store, { clock, log, signal: timeout });
  } catch (error) {
    signal.throwIfAborted();
    const reason = timeout.aborted ? 'timed out waiting for the proxies' : errorMessage(error);
    log.warn(
      { reason },
      'failed to close the listeners of all proxies; the remaining proxies keep their listeners until Helm deletes the proxies',
    );
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
  /** How long to wait for the pods of the Deployment to end; default 60 s. */
  readonly podTimeoutMs?: number;
}

interface Scale {
  readonly status?: { readonly selector?: string };
}

interface Pod {
  readonly metadata: { readonly name: string };
}

const POD_POLL_MS = 500;
/**
 * How long to wait for pods to end. This is longer than their grace period. There is a limit, because a pod on a lost node stays as
 * long as its Node object.
 */
const DEFAULT_POD_TIMEOUT_MS = 60_000;

/**
 * Scales the Deployment to 0 and waits until its pods are gone, because a running controller would restore the fields that are
 * removed next. Returns the names of the pods that are left at the timeout, for example on a lost node.
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
  // An empty selector would match all pods of the namespace.
  if (labelSelector === '') throw new Error(`Deployment ${namespace}/${name} has no selector in its scale status`);
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
 * Publishes an empty table, and waits until every live proxy has applied this table. Then no proxy has an open listener, and no proxy
 * would serve an old table from its disk. Rejects if the store is unreachable.
 */
export async function publishEmptyTable(
  store: Store,
  { clock, log, signal }: { readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const publisher = new TablePublisher({ store: store.table });
  await publisher.becomeLeader();
  const outcome = await publisher.publish(EMPTY_TABLE);
  if (outcome.kind === 'not-leader')
    throw new Error('another controller has claimed the table; stop all controllers of this fleet first');
  for (;;) {
    const behind = await nodesBehind(store, outcome.position);
    if (behind.length === 0) return;
    log.info({ nodes: behind }, 'waiting for proxies to close their listeners');
    await wait(clock, HEARTBEAT_POLL_MS, signal);
  }
}

async function nodesBehind({ heartbeats }: Store, { id }: TablePosition): Promise<readonly string[]> {
  return (await heartbeats.list()).filter(({ applied }) => applied?.id !== id).map(({ node }) => node);
}
