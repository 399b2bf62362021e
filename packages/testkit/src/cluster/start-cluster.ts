import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '../fixtures/control-plane.ts';
import { programPath } from '../programs/require-program.ts';
import { type SpawnedProcess, spawnProcess } from '../spawn-process.ts';
import { clusterImages } from './images.ts';
import { API_SERVER_ADDRESS, layWires, placesFor } from './network.ts';
import { type ClusterNode, type RunningNode, startNode } from './node.ts';

export type ClusterOptions = {
  readonly nodes?: number;
  /** Addresses of 10.250.0.0/24 from 10.250.0.100 on, which the test may connect from. */
  readonly clients?: readonly string[];
};

export type Cluster = ControlPlane & {
  /** Where the control plane is, and what else nodes are to reach. */
  readonly address: string;
  readonly nodes: readonly ClusterNode[];
  /** The end of what each of its processes wrote, for a test that fails. */
  output(): string;
};

/**
 * A real Kubernetes with real nodes: each is a network namespace with containerd, kubelet and kube-proxy (nftables), labelled
 * `role=loadbalancer`. Pods run the images of `images.ts`, and reach each other over routes. For test files that have called
 * `insideMachine`. Returns when all nodes are ready.
 */
export async function startCluster({ nodes = 2, clients = [] }: ClusterOptions = {}): Promise<Cluster> {
  const places = placesFor(nodes);
  layWires(places, clients);
  // What kubelets mount in it goes with the machine, and so does the folder: nobody else removes it.
  const directory = mkdtempSync(join(tmpdir(), 'cluster-'));
  const images = join(directory, 'images.tar');
  writeFileSync(images, clusterImages());
  const control = await startControlPlane({ host: API_SERVER_ADDRESS, nodes: 'with-kubelets' });
  const { kubeconfig } = control;
  const running: RunningNode[] = [];
  let scheduler: SpawnedProcess | undefined;
  const close = async (): Promise<void> => {
    await Promise.all(running.map((node) => node.close()));
    await scheduler?.stop('SIGKILL');
    await control.close();
  };
  try {
    scheduler = await spawnProcess({
      command: programPath('kube-scheduler'),
      args: [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--authentication-skip-lookup'],
    });
    running.push(...(await Promise.all(places.map((place) => startNode(place, { kubeconfig, directory, images })))));
    for (const { name } of places) await control.kubectl('wait', '--for=create', `node/${name}`, '--timeout=60s');
    await control.kubectl('wait', '--for=condition=Ready', 'node', '--all', '--timeout=60s');
  } catch (error) {
    const said = running.map((node) => node.output()).join('\n');
    await close();
    throw new Error(`the cluster does not come up: ${error instanceof Error ? error.message : error}\n${said}`, {
      cause: error,
    });
  }
  return {
    ...control,
    address: API_SERVER_ADDRESS,
    nodes: running,
    output: () => running.map((node) => node.output()).join('\n'),
    close,
    [Symbol.asyncDispose]: close,
  };
}
