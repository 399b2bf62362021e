import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SpawnedProcess, spawnProcess } from '@weir/testkit';
import { type ControlPlane, startControlPlane } from '../kubernetes/control-plane.ts';
import { programPath } from '../programs/require-program.ts';
import { startDns } from './dns.ts';
import { API_SERVER_ADDRESS, createNetwork, nodeNetworks } from './network.ts';
import { type ClusterNode, type RunningNode, startNode } from './node.ts';
import { podImagesArchive } from './pod-images.ts';

export type ClusterOptions = {
  readonly nodes?: number;
  /** Addresses from 10.250.0.100 to 10.250.0.254 that clients of the test may bind. */
  readonly clientAddresses?: readonly string[];
  /** See `ControlPlaneOptions`. */
  readonly certificateNames?: readonly string[];
  readonly auditedNamespace?: string;
  /** URL of the API server in the kubeconfig of kubelet and kube-proxy; default: the URL of the control plane. */
  readonly apiServer?: string;
  /** Static pod manifests of every node by file name. */
  readonly staticPods?: Readonly<Record<string, string>>;
  /** Called before the nodes start, to write files that the nodes need. */
  readonly prepare?: (control: ControlPlane) => void;
  /** Image archives that nodes import in addition to the images of `pod-images.ts`. */
  readonly images?: readonly string[];
};

export type Cluster = ControlPlane & {
  /** Address of the control plane on the bridge of the cluster. */
  readonly address: string;
  readonly nodes: readonly ClusterNode[];
  /** Returns the last output of the processes of all nodes, for the report of a failing test. */
  output(): string;
};

/**
 * Starts a Kubernetes cluster with real nodes. Each node is a network namespace with containerd, kubelet and kube-proxy
 * (nftables) and the label `role=loadbalancer`. Pods run the images of `pod-images.ts` and reach the pods of other nodes over routes.
 * The test file must have called `insideSandbox`. Resolves when all nodes are ready.
 */
export async function startCluster({
  nodes = 2,
  clientAddresses = [],
  images: additionalImages = [],
  certificateNames,
  auditedNamespace,
  apiServer,
  staticPods = {},
  prepare,
}: ClusterOptions = {}): Promise<Cluster> {
  const networks = nodeNetworks(nodes);
  createNetwork(networks, clientAddresses);
  // The directory is never removed, because it disappears with the sandbox, like the mounts that kubelets make in the directory.
  const directory = mkdtempSync(join(tmpdir(), 'cluster-'));
  const podImages = join(directory, 'images.tar');
  writeFileSync(podImages, podImagesArchive());
  const images = [podImages, ...additionalImages];
  const control = await startControlPlane({
    host: API_SERVER_ADDRESS,
    nodes: 'with-kubelets',
    ...(certificateNames && { certificateNames }),
    ...(auditedNamespace && { auditedNamespace }),
  });
  const { kubeconfig, server } = control;
  const nodeKubeconfig = join(directory, 'kubeconfig');
  writeFileSync(nodeKubeconfig, readFileSync(kubeconfig, 'utf8').replace(server, apiServer ?? server), { mode: 0o600 });
  prepare?.(control);
  const runningNodes: RunningNode[] = [];
  const otherProcesses: SpawnedProcess[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(runningNodes.map((node) => node.close()));
    await Promise.all(otherProcesses.map((process) => process.stop('SIGKILL')));
    await control.close();
  };
  try {
    const scheduler = await spawnProcess({
      command: programPath('kube-scheduler'),
      args: [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--authentication-skip-lookup'],
    });
    otherProcesses.push(scheduler, await startDns(control, directory));
    runningNodes.push(
      ...(await Promise.all(
        networks.map((network) => startNode(network, { kubeconfig: nodeKubeconfig, directory, images, staticPods })),
      )),
    );
    for (const { name } of networks) await control.kubectl('wait', '--for=create', `node/${name}`, '--timeout=60s');
    await control.kubectl('wait', '--for=condition=Ready', 'node', '--all', '--timeout=60s');
  } catch (error) {
    const output = runningNodes.map((node) => node.output()).join('\n');
    await close();
    throw new Error(`the cluster did not start: ${error instanceof Error ? error.message : error}\n${output}`, {
      cause: error,
    });
  }
  return {
    ...control,
    address: API_SERVER_ADDRESS,
    nodes: runningNodes,
    output: () => runningNodes.map((node) => node.output()).join('\n'),
    close,
    [Symbol.asyncDispose]: close,
  };
}
