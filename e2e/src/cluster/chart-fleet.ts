// Weir as operators install it: helm installs a release of the chart on a cluster whose nodes already have Weir's images.
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '@weir/testkit';
import { type Cluster, startCluster, weirImages } from '@weir/tools';
import { type HelmResult, runHelm, WEIR_CHART } from '../chart/helm.ts';
import { CLIENT_ADDRESSES, type ClusterFleet, clusterFleet } from './node-fleet.ts';

export const RELEASE_NAMESPACE = 'weir-system';
/** The numbers of the volumes. Each release that a test installs needs one volume. */
const VOLUME_NUMBERS = [1, 2, 3] as const;

export interface ChartFleet extends ClusterFleet, AsyncDisposable {
  /** The environment with which helm and kubectl use the cluster. */
  readonly env: NodeJS.ProcessEnv;
  /** Runs `helm ARGS -n weir-system`. Rejects with helm's output if the command fails. */
  helm(...args: readonly string[]): Promise<string>;
  /** Runs `helm upgrade --install RELEASE charts/weir --wait` with further arguments. */
  install(release: string, ...args: readonly string[]): Promise<string>;
  kubectl(...args: Parameters<Cluster['kubectl']>): Promise<string>;
  /** Runs `kubectl get ARGS` and returns the parsed object. */
  get<T>(...args: string[]): Promise<T>;
  /** Returns descriptions and logs of the release's pods, and the output of the nodes, for the report of a failing test. */
  output(): Promise<string>;
  close(): Promise<void>;
}

/** Starts a cluster without a release. The nodes have Weir's images and may carry traffic; the first node has volumes for Redis. */
export async function startChartFleet({ nodes = 3 }: { readonly nodes?: number } = {}): Promise<ChartFleet> {
  const { proxy, controller, redis } = await weirImages();
  const cluster = await startCluster({
    nodes,
    auditedNamespace: RELEASE_NAMESPACE,
    clientAddresses: CLIENT_ADDRESSES,
    images: [proxy, controller, redis],
  });
  // Creates the folder last, because the failure of an earlier step would leave the folder behind.
  const home = temporaryDirectory('helm');
  const { kubectl } = cluster;
  const env = {
    KUBECONFIG: cluster.kubeconfig,
    HELM_CACHE_HOME: `${home.path}/cache`,
    HELM_CONFIG_HOME: `${home.path}/config`,
    HELM_DATA_HOME: `${home.path}/data`,
  };
  const run = async (args: readonly string[]): Promise<string> =>
    stdoutOf(await runHelm([...args, `--namespace=${RELEASE_NAMESPACE}`], env));
  const close = async (): Promise<void> => {
    try {
      await cluster.close();
    } finally {
      await home.close();
    }
  };
  const fleet: ChartFleet = {
    ...clusterFleet(cluster),
    env,
    helm: (...args) => run(args),
    install: (release, ...args) =>
      run([
        'upgrade',
        '--install',
        release,
        fileURLToPath(WEIR_CHART),
        '--create-namespace',
        '--wait',
        '--timeout=3m',
        ...args,
      ]),
    kubectl,
    get: async (...args) => JSON.parse(await kubectl('get', ...args, '-o', 'json')) as never,
    async output() {
      const pods = await kubectl('describe', 'pods', '-n', RELEASE_NAMESPACE).catch(String);
      const logs = await kubectl(
        'logs',
        '-n',
        RELEASE_NAMESPACE,
        '-l=app.kubernetes.io/name=weir',
        '--all-containers',
        '--prefix',
        '--tail=40',
      ).catch(String);
      return `${pods}\n${logs}\n${cluster.output()}`;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
  try {
    await fleet.apply(...volumeManifests(cluster.nodes[0]?.name ?? ''));
  } catch (error) {
    await close();
    throw error;
  }
  return fleet;
}

function stdoutOf({ ok, output, stdout }: HelmResult): string {
  if (!ok) throw new Error(output);
  return stdout;
}

/** Returns a default StorageClass and its volumes. The volumes exist in advance, because the cluster has no volume provisioner. */
function volumeManifests(node: string): readonly object[] {
  const name = 'test-volumes';
  const folderOf = (number: number): string => `/var/lib/volumes/${number}`;
  for (const number of VOLUME_NUMBERS) mkdirSync(folderOf(number), { recursive: true });
  return [
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    },
    ...VOLUME_NUMBERS.map((number) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `${name}-${number}` },
      spec: {
        storageClassName: name,
        capacity: { storage: '2Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        local: { path: folderOf(number) },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] },
            ],
          },
        },
      },
    })),
  ];
}
