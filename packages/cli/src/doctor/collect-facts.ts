import { networkInterfaces } from 'node:os';
import { loadKubeConfig } from '@weir/controller';
import type { Heartbeat } from '@weir/model';
import { DEFAULT_TRANSPORT, kernelWarnings } from '@weir/proxy';
import { type Clock, errorMessage, silentLogger, systemClock, UsageError } from '@weir/runtime';
import { FLEET_NAME_FORMAT, inspectRedis, openRedisStore, type RedisAccess } from '@weir/store';
import { attemptFact, type ClusterFacts, collectCluster, unknownCluster, withTimes } from './collect-cluster.ts';
import { type Facts, type HostFact, type Timed, unknownFact } from './facts.ts';
import { REDIS_UNAVAILABLE } from './finding.ts';

export interface CollectOptions {
  readonly kubeconfig: string | undefined;
  readonly redis: RedisAccess | undefined;
  readonly fleet: string;
  readonly loadBalancerClass: string;
  readonly serviceCidrs: string | undefined;
  /** Namespace of the fleet's Lease. If it is undefined, the Leases of all namespaces are listed. */
  readonly namespace: string | undefined;
  readonly version: string;
  readonly signal: AbortSignal;
}

/** Collects every fact that can be read. Throws `UsageError` if neither a cluster nor a Redis is configured. */
export async function collectFacts(options: CollectOptions): Promise<Facts> {
  const { redis: access, fleet, loadBalancerClass, serviceCidrs, version, signal } = options;
  if (!FLEET_NAME_FORMAT.pattern.test(fleet)) {
    throw new UsageError(`invalid --fleet (or WEIR_FLEET) "${fleet}": expected ${FLEET_NAME_FORMAT.allowed}`);
  }
  const clock = systemClock;
  const [cluster, redis, host] = await Promise.all([
    collectClusterIfConfigured(options),
    collectRedis({ access, fleet, clock, signal }),
    collectHost(),
  ]);
  return { now: clock.now(), fleet, loadBalancerClass, serviceCidrs, version, ...cluster, ...redis, host };
}

/**
 * Collects the facts about the cluster. If no kubeconfig is found, resolves with unknown facts, so that Redis is still checked. Rejects if
 * a kubeconfig that the user named does not exist.
 */
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
    if (redis === undefined)
      throw new UsageError(
        `${message}; there is also no Redis to check, because neither --redis nor WEIR_REDIS_URL is set`,
      );
    return unknownCluster(unknownFact('not-asked', message));
  }
}

async function collectHost(): Promise<HostFact> {
  const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
  return {
    addresses,
    kernelWarnings: process.platform === 'linux' ? await kernelWarnings(DEFAULT_TRANSPORT) : undefined,
  };
}

type RedisFacts = Pick<Facts, 'redis' | 'heartbeats'>;

interface CollectRedisOptions {
  readonly access: RedisAccess | undefined;
  readonly fleet: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Reads the settings of Redis and the heartbeats of the proxies. */
async function collectRedis(options: CollectRedisOptions): Promise<RedisFacts> {
  const { access, clock, signal } = options;
  if (access === undefined) {
    const notConfigured = unknownFact(
      'not-asked',
      'no Redis is configured; set --redis URL or WEIR_REDIS_URL to the value that the controller has',
    );
    return { redis: notConfigured, heartbeats: REDIS_UNAVAILABLE };
  }
  const redis = await attemptFact(signal, () =>
    withTimes(clock, () => inspectRedis({ ...access, fleet: options.fleet })),
  );
  if (redis.kind === 'unknown') return { redis, heartbeats: REDIS_UNAVAILABLE };
  return { redis, heartbeats: await attemptFact(signal, () => readHeartbeats({ ...options, access })) };
}

async function readHeartbeats({
  access,
  fleet,
  clock,
}: CollectRedisOptions & { readonly access: RedisAccess }): Promise<Timed<HeartbeatList>> {
  const store = await openRedisStore({ ...access, fleet, log: silentLogger() });
  try {
    if (store.connectionError !== undefined) throw store.connectionError;
    return await withTimes(clock, async () => ({ items: await store.heartbeats.list() }));
  } finally {
    await store.close();
  }
}

interface HeartbeatList {
  readonly items: readonly Heartbeat[];
}
