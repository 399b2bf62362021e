import { loadKubeConfig } from '@weir/controller';
import { errorMessage, systemClock, UsageError } from '@weir/runtime';
import { FLEET_NAME, type RedisAccess } from '@weir/store';
import { unknown } from '../fact.ts';
import type { Facts } from '../facts.ts';
import { type ClusterFacts, clusterFacts, nothingKnown } from './cluster-facts.ts';
import { hostFacts } from './host-facts.ts';
import { redisFacts } from './redis-facts.ts';

export interface Whom {
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
export async function collectFacts(whom: Whom): Promise<Facts> {
  const { redis: access, fleet, loadBalancerClass, serviceCidrs, version, signal } = whom;
  if (!FLEET_NAME.pattern.test(fleet)) {
    throw new UsageError(`--fleet (or WEIR_FLEET) is "${fleet}"; use ${FLEET_NAME.allowed}`);
  }
  const clock = systemClock;
  const [cluster, redis, host] = await Promise.all([
    clusterOf(whom),
    redisFacts({ access, fleet, clock, signal }),
    hostFacts(),
  ]);
  return { now: clock.now(), fleet, loadBalancerClass, serviceCidrs, version, ...cluster, ...redis, host };
}

/** A file that was named has to be there; one that was only looked for leaves Redis to be checked. */
async function clusterOf({ kubeconfig, redis, fleet, namespace, signal }: Whom): Promise<ClusterFacts> {
  try {
    const kubeConfig = loadKubeConfig(kubeconfig);
    return await clusterFacts({ kubeConfig, fleet, namespace, clock: systemClock, signal });
  } catch (error) {
    if (!(error instanceof UsageError) || kubeconfig !== undefined) throw error;
    const message = `${errorMessage(error)}, or --kubeconfig`;
    if (redis === undefined) throw new UsageError(`${message}; and no Redis was named by --redis or WEIR_REDIS_URL`);
    return nothingKnown(unknown('not-asked', message));
  }
}
