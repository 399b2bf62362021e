// What is taken back before a fleet is deleted for good, in the order in which nobody is lied to.
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import type { Store } from '@weir/store';
import { KubeApiError } from '../kubernetes/api-error.ts';
import type { KubeApi } from '../kubernetes/kube-api.ts';
import { forEachConcurrently } from '../status/for-each-of.ts';
import { type DeploymentName, stopDeployment } from './deployment.ts';
import { publishEmptyTable } from './empty-table.ts';
import { listPages } from './pages.ts';
import { removeFinalizers, removeStatus } from './take-back-status.ts';

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
