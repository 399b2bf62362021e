// Pods made ready by hand: the object by kubectl, its status by a patch, and in place of its container a server of the test.
import { type ControlPlane, type CountingServer, echoServer, type HttpBackend, httpBackend } from '@weir/testkit';
import { NODES, podAddress, podAddress6 } from './addresses.ts';

export interface PodOptions {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Which of the pod addresses it has. */
  readonly number: number;
  readonly port: number;
  /** Default IPv4. */
  readonly family?: 'IPv4' | 'IPv6';
  /** Default: it is as soon as it is there. */
  readonly ready?: boolean;
}

export type Pod<Server> = PodOptions & {
  readonly server: Server;
  remove(): Promise<void>;
  setReady(is: boolean): Promise<void>;
};

/** The pods of one test file; their servers go with `close`. */
export class Pods {
  readonly #cluster: ControlPlane;
  readonly #servers: { close(): Promise<void> }[] = [];
  #numbers = 0;

  constructor(cluster: ControlPlane) {
    this.#cluster = cluster;
  }

  async http(options: PodOptions): Promise<Pod<HttpBackend>> {
    return this.#run(options, await httpBackend({ host: addressOf(options), port: options.port }));
  }

  async echo(options: PodOptions): Promise<Pod<CountingServer>> {
    return this.#run(options, await echoServer({ host: addressOf(options), port: options.port }));
  }

  /** A further pod of the Service `namespace/name`, with the next number. */
  echoOf(path: string, change: Partial<PodOptions> = {}): Promise<Pod<CountingServer>> {
    const [namespace = '', app = ''] = path.split('/');
    this.#numbers += 1;
    const number = this.#numbers;
    return this.echo({ namespace, name: `${app}-${number}`, labels: { app }, number, port: 8080, ...change });
  }

  /** As those of the tests on real nodes: says its name, on a line, then sends back what it gets. */
  async named(options: PodOptions): Promise<Pod<CountingServer>> {
    const greeting = `${options.name}\n`;
    return this.#run(options, await echoServer({ host: addressOf(options), port: options.port, greeting }));
  }

  /** A server that is in no pod. */
  async echoAt(where: { readonly host: string; readonly port: number }): Promise<CountingServer> {
    const server = await echoServer(where);
    this.#servers.push(server);
    return server;
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  #run<Server extends { close(): Promise<void> }>(options: PodOptions, server: Server): Promise<Pod<Server>> {
    this.#servers.push(server);
    return makeReady(this.#cluster, { ...options, server });
  }
}

function addressOf({ number, family }: PodOptions): string {
  return family === 'IPv6' ? podAddress6(number) : podAddress(number);
}

async function makeReady<Server extends { close(): Promise<void> }>(
  cluster: ControlPlane,
  pod: PodOptions & { server: Server },
): Promise<Pod<Server>> {
  const { namespace, name, labels } = pod;
  const ip = addressOf(pod);
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels },
    // EndpointSlices leave pods out that no node has.
    spec: {
      nodeName: NODES[0],
      containers: [{ name: 'main', image: 'test.invalid/none', ports: [{ name: 'main', containerPort: pod.port }] }],
    },
  };
  await cluster.apply(object);
  await setStatus(cluster, pod, {
    phase: 'Running',
    podIP: ip,
    podIPs: [{ ip }],
    conditions: [ready(pod.ready ?? true)],
  });
  return {
    ...pod,
    remove: () => removeKindly(cluster, pod),
    setReady: (is) => setStatus(cluster, pod, { conditions: [ready(is)] }),
  };
}

/** As a kubelet does it: unready, so that nobody new comes, and terminating; the server answers those who are connected. */
async function removeKindly(
  cluster: ControlPlane,
  pod: PodOptions & { server: { close(): Promise<void> } },
): Promise<void> {
  await setStatus(cluster, pod, { conditions: [ready(false)] });
  await cluster.kubectl('delete', 'pod', pod.name, '-n', pod.namespace, '--wait=false');
}

function ready(is: boolean): object {
  return { type: 'Ready', status: is ? 'True' : 'False' };
}

async function setStatus(cluster: ControlPlane, { namespace, name }: PodOptions, status: object): Promise<void> {
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
