import { loadKubeConfig } from '@weir/controller';
import { errorMessage, systemClock, UsageError } from '@weir/runtime';
import { FLEET_NAME_FORMAT, type RedisAccess } from '@weir/store';
import { unknownFact } from '../fact.ts';
import type { Facts } from '../facts.ts';
import { type ClusterFacts, collectCluster, unknownCluster } from './cluster-facts.ts';
import { collectHost } from './host-facts.ts';
import { collectRedis } from './redis-facts.ts';

export interface CollectOptions {
  readonly kubeconfig: string | undefined;
  readonly redis: RedisAccess | undefined;
  readonly fleet: string;
  readonly loadBalancerClass: string;
  readonly serviceCidrs: string | undefined;
  /** Where the Lease of the fleet is, if that is known; else it is looked for everywhere. */
  readonly namespace: string | undefined;
  readonly version: string;
  readonly signal: AbortSignal;
}

/** Looks at everything that can be reached. Throws `UsageError` when there is nothing to look at. */
export async function collectFacts(whom: CollectOptions): Promise<Facts> {
  const { redis: access, fleet, loadBalancerClass, serviceCidrs, version, signal } = whom;
  if (!FLEET_NAME_FORMAT.pattern.test(fleet)) {
    throw new UsageError(`--fleet (or WEIR_FLEET) is "${fleet}"; use ${FLEET_NAME_FORMAT.allowed}`);
  }
  const clock = systemClock;
  const [cluster, redis, host] = await Promise.all([
    collectClusterIfConfigured(whom),
    collectRedis({ access, fleet, clock, signal }),
    collectHost(),
  ]);
  return { now: clock.now(), fleet, loadBalancerClass, serviceCidrs, version, ...cluster, ...redis, host };
}

/** A file that was named has to be there; one that was only looked for leaves Redis to be checked. */
async function collectClusterIfConfigured({
  kubeconfig,
  redis,
  fleet,
  namespace,
  signal,
}: CollectOptions): Promise<ClusterFacts> {
  try {
    const kubeConfig = loadKubeConfig(kubeconfig);
    return await collectCluster({ kubeConfig, fleet, namespace, clock: systemClock, signal });
  } catch (error) {
    if (!(error instanceof UsageError) || kubeconfig !== undefined) throw error;
    const message = `${errorMessage(error)}, or --kubeconfig`;
    if (redis === undefined) throw new UsageError(`${message}; and no Redis was named by --redis or WEIR_REDIS_URL`);
    return unknownCluster(unknownFact('not-asked', message));
  }
}
