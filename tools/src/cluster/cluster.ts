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
  /** Addresses of 10.250.0.0/24 from 10.250.0.100 on, which the test may connect from. */
  readonly clientAddresses?: readonly string[];
  /** As of `ControlPlaneOptions`. */
  readonly certificateNames?: readonly string[];
  readonly auditedNamespace?: string;
  /** Where kubelet and kube-proxy look for the API server; default: where it is. */
  readonly apiServer?: string;
  /** Static pods of each node, by the name of the file. */
  readonly staticPods?: Readonly<Record<string, string>>;
  /** What has to lie in the folders of the machine before a node starts. */
  readonly prepare?: (control: ControlPlane) => void;
  /** Archives with images that nodes shall have beside those of `images.ts`. */
  readonly images?: readonly string[];
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
 * `insideSandbox`. Returns when all nodes are ready.
 */
export async function startCluster({
  nodes = 2,
  clientAddresses = [],
  images: more = [],
  certificateNames,
  auditedNamespace,
  apiServer,
  staticPods = {},
  prepare,
}: ClusterOptions = {}): Promise<Cluster> {
  const places = nodeNetworks(nodes);
  createNetwork(places, clientAddresses);
  // What kubelets mount in it goes with the machine, and so does the folder: nobody else removes it.
  const directory = mkdtempSync(join(tmpdir(), 'cluster-'));
  const own = join(directory, 'images.tar');
  writeFileSync(own, podImagesArchive());
  const images = [own, ...more];
  const control = await startControlPlane({
    host: API_SERVER_ADDRESS,
    nodes: 'with-kubelets',
    ...(certificateNames && { certificateNames }),
    ...(auditedNamespace && { auditedNamespace }),
  });
  const { kubeconfig, server } = control;
  const ofNodes = join(directory, 'kubeconfig');
  writeFileSync(ofNodes, readFileSync(kubeconfig, 'utf8').replace(server, apiServer ?? server), { mode: 0o600 });
  prepare?.(control);
  const running: RunningNode[] = [];
  const beside: SpawnedProcess[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(running.map((node) => node.close()));
    await Promise.all(beside.map((each) => each.stop('SIGKILL')));
    await control.close();
  };
  try {
    const scheduler = await spawnProcess({
      command: programPath('kube-scheduler'),
      args: [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--authentication-skip-lookup'],
    });
    beside.push(scheduler, await startDns(control, directory));
    running.push(
      ...(await Promise.all(
        places.map((place) => startNode(place, { kubeconfig: ofNodes, directory, images, staticPods })),
      )),
    );
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
