// Creates pods without a kubelet. kubectl creates the Pod object, a patch sets its status, and a server in the process of the test replaces
// the container.
import { type ByteCountingServer, echoServer, type HttpBackend, httpBackend } from '@weir/testkit';
import type { ControlPlane } from '@weir/tools';
import { NODES, type NodeName, nodeAddress, podAddress, podAddress6 } from './addresses.ts';

export interface PodOptions {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The number that determines the pod's address. */
  readonly number: number;
  readonly port: number;
  /** The IP family of the pod's address. Default: IPv4. */
  readonly family?: 'IPv4' | 'IPv6';
  /** The node whose address the pod has, if the pod is on the host network. */
  readonly hostNode?: NodeName;
  /** Whether the pod is ready. Default: true. */
  readonly ready?: boolean;
}

export type Pod<Server> = PodOptions & {
  readonly server: Server;
  remove(): Promise<void>;
  setReady(isReady: boolean): Promise<void>;
};

/** The pods of one test file. `close` closes the servers of all pods. */
export class Pods {
  readonly #cluster: ControlPlane;
  readonly #servers: { close(): Promise<void> }[] = [];
  #podCount = 0;

  constructor(cluster: ControlPlane) {
    this.#cluster = cluster;
  }

  async http(options: PodOptions): Promise<Pod<HttpBackend>> {
    return this.#addPod(options, await httpBackend({ host: podIp(options), port: options.port }));
  }

  async echo(options: PodOptions): Promise<Pod<ByteCountingServer>> {
    return this.#addPod(options, await echoServer({ host: podIp(options), port: options.port }));
  }

  /** Creates another pod for the Service `namespace/name`. The pod's name and address get the next number, counted from 1. */
  echoForService(path: string, change: Partial<PodOptions> = {}): Promise<Pod<ByteCountingServer>> {
    const [namespace = '', app = ''] = path.split('/');
    this.#podCount += 1;
    const number = this.#podCount;
    return this.echo({ namespace, name: `${app}-${number}`, labels: { app }, number, port: 8080, ...change });
  }

  /** Creates a pod that sends its name on one line and then echoes, like the pods of the tests on real nodes. */
  async echoWithName(options: PodOptions): Promise<Pod<ByteCountingServer>> {
    const greeting = `${options.name}\n`;
    return this.#addPod(options, await echoServer({ host: podIp(options), port: options.port, greeting }));
  }

  /** Starts an echo server that belongs to no pod. */
  async echoServerAt(where: { readonly host: string; readonly port: number }): Promise<ByteCountingServer> {
    const server = await echoServer(where);
    this.#servers.push(server);
    return server;
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  #addPod<Server extends { close(): Promise<void> }>(options: PodOptions, server: Server): Promise<Pod<Server>> {
    this.#servers.push(server);
    return createReadyPod(this.#cluster, { ...options, server });
  }
}

function podIp({ number, family, hostNode }: PodOptions): string {
  if (hostNode !== undefined) return nodeAddress(hostNode);
  return family === 'IPv6' ? podAddress6(number) : podAddress(number);
}

async function createReadyPod<Server extends { close(): Promise<void> }>(
  cluster: ControlPlane,
  pod: PodOptions & { server: Server },
): Promise<Pod<Server>> {
  const { namespace, name, labels } = pod;
  const ip = podIp(pod);
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels },
    // Assigns the pod to a node, because EndpointSlices omit pods without a node.
    spec: {
      nodeName: pod.hostNode ?? NODES[0],
      hostNetwork: pod.hostNode !== undefined,
      containers: [{ name: 'main', image: 'test.invalid/none', ports: [{ name: 'main', containerPort: pod.port }] }],
    },
  };
  await cluster.apply(object);
  await patchPodStatus(cluster, pod, {
    phase: 'Running',
    podIP: ip,
    podIPs: [{ ip }],
    conditions: [readyCondition(pod.ready ?? true)],
  });
  return {
    ...pod,
    remove: () => deletePodGracefully(cluster, pod),
    setReady: (isReady) => patchPodStatus(cluster, pod, { conditions: [readyCondition(isReady)] }),
  };
}

/** Marks the pod as unready and terminating, as a kubelet does. The pod's server still serves open connections. */
async function deletePodGracefully(
  cluster: ControlPlane,
  pod: PodOptions & { server: { close(): Promise<void> } },
): Promise<void> {
  await patchPodStatus(cluster, pod, { conditions: [readyCondition(false)] });
  await cluster.kubectl('delete', 'pod', pod.name, '-n', pod.namespace, '--wait=false');
}

function readyCondition(isReady: boolean): object {
  return { type: 'Ready', status: isReady ? 'True' : 'False' };
}

async function patchPodStatus(cluster: ControlPlane, { namespace, name }: PodOptions, status: object): Promise<void> {
  await cluster.kubectl(
    'patch',
    'pod',
    name,
    '-n',
    namespace,
    '--subresource=status',
    '-p',
    JSON.stringify({ status }),
  );
}
