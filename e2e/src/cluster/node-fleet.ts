import { fileURLToPath } from 'node:url';
import { type SpawnedProcess, type SpawnOptions, spawnProcess } from '@weir/testkit';
import { type Cluster, type ClusterNode, startCluster, startRedis } from '@weir/tools';
import { applyCustomResources } from '../fleet.ts';
import { patchService } from '../service-status.ts';

// Runs Weir on real nodes without the chart. The controller runs next to the API server. A proxy runs in the network namespace of each
// node, like a pod of the DaemonSet.

/** The local addresses of clients. */
export const CLIENT_ADDRESSES = ['10.250.0.101', '10.250.0.102'] as const;

export interface NodeFleet extends ClusterFleet, AsyncDisposable {
  output(): string;
  close(): Promise<void>;
}

const PACKAGES = fileURLToPath(new URL('../../../packages/', import.meta.url));

export async function startNodeFleet(): Promise<NodeFleet> {
  const cluster = await startCluster({ nodes: 2, clientAddresses: CLIENT_ADDRESSES });
  const redis = await startRedis({ host: cluster.address, password: 'test-password' });
  const running: SpawnedProcess[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(running.map((process) => process.stop('SIGKILL')));
    await Promise.all([redis.close(), cluster.close()]);
  };
  const common = { ...process.env, WEIR_FLEET: 'cluster', WEIR_REDIS_URL: redis.url, WEIR_LOG_LEVEL: 'info' };
  await applyCustomResources(cluster);
  running.push(await spawnProcess(controllerOptions(cluster, common)));
  for (const node of cluster.nodes) running.push(await node.spawn(proxyOptions(node, common)));
  return {
    ...clusterFleet(cluster),
    output: () => running.map((process) => process.output().slice(-4000)).join('\n'),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function controllerOptions(cluster: Cluster, common: NodeJS.ProcessEnv): SpawnOptions {
  const own = {
    KUBECONFIG: cluster.kubeconfig,
    WEIR_CLASSLESS: 'true',
    WEIR_NAMESPACE: 'kube-system',
    WEIR_SERVICE_CIDRS: '10.96.0.0/16',
    WEIR_ADMIN: 'off',
  };
  return processOptions('controller', { ...common, ...own });
}

function proxyOptions({ name }: ClusterNode, common: NodeJS.ProcessEnv): SpawnOptions {
  return processOptions('proxy', { ...common, WEIR_NODE: name, WEIR_WORKERS: '2' });
}

function processOptions(name: 'controller' | 'proxy', env: NodeJS.ProcessEnv): SpawnOptions {
  return { name, command: process.execPath, args: ['--conditions=source', `${PACKAGES}${name}/src/main.ts`], env };
}

// A cluster on which `startNodeFleet` or the chart has installed Weir.
export interface ClusterFleet {
  readonly cluster: Cluster;
  /** The addresses of the nodes that carry traffic. Services publish these addresses. */
  readonly addresses: readonly string[];
  apply(...objects: readonly object[]): Promise<void>;
  /** Merges `spec` into the `spec` of a Service; lists are replaced. */
  patchServiceSpec(path: string, spec: object): Promise<void>;
}

export function clusterFleet(cluster: Cluster): ClusterFleet {
  return {
    cluster,
    addresses: cluster.nodes.map(({ address }) => address),
    apply: cluster.apply,
    patchServiceSpec: (path, spec) => patchService(cluster, path, { spec }),
  };
}
