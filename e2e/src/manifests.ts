import { ECHO_IMAGE } from '@weir/tools';

// Objects as people write them, without what does not matter to a test.
interface LoadBalancerOptions {
  readonly annotations?: Readonly<Record<string, string>>;
}

export const namespaceManifest = (name: string, labels: Readonly<Record<string, string>> = {}): object => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});

/** Named `namespace/name`; `spec` stands in place of a selector for `app: name` and port 80. */
export const loadBalancer = (
  path: string,
  spec: object = {},
  { annotations = {} }: LoadBalancerOptions = {},
): object => {
  const [namespace_ = '', name = ''] = path.split('/');
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: namespace_, name, annotations },
    spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80, targetPort: 'main' }], ...spec },
  };
};

/** A slice that somebody wrote, of the Service `namespace/name`, with the one port of it. */
export const endpointSlice = (path: string, addresses: readonly string[], more: object = {}): object => {
  const [namespace_ = '', service = ''] = path.split('/');
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: namespace_, name: `${service}-by-hand`, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ name: '', port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ...more,
  };
};

/** For the namespaces with the label `team: name`. */
export const tenantPolicy = (name: string, spec: object): object => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'TenantPolicy',
  metadata: { name },
  spec: { namespaceSelector: { matchLabels: { team: name } }, nodesPerService: 3, ...spec },
});

export const suspension = (name: string, spec: object): object => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'Suspension',
  metadata: { name },
  spec,
});

// What a tenant would apply: pods that say their names, and a Service for them.

/** Of every pod, TCP and UDP. */
const ECHO_PORT = 7000;

export interface EchoPodOptions {
  readonly namespace: string;
  readonly replicas: number;
  /** How long a pod that is to go still answers, so that the news of it arrives first: a preStop hook. */
  readonly preStopSeconds?: number;
}

export function plainNamespace(name: string): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

/** Spread over the nodes. */
export function echoPods({ namespace, replicas, preStopSeconds }: EchoPodOptions): object {
  const labels = { app: 'echo' };
  const container = {
    name: 'echo',
    image: ECHO_IMAGE,
    imagePullPolicy: 'Never',
    args: [String(ECHO_PORT)],
    readinessProbe: { tcpSocket: { port: ECHO_PORT }, periodSeconds: 1 },
    ...(preStopSeconds === undefined ? {} : { lifecycle: { preStop: { sleep: { seconds: preStopSeconds } } } }),
  };
  const spread = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace, name: 'echo' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: { labels },
        spec: {
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 10,
          topologySpreadConstraints: [{ ...spread, labelSelector: { matchLabels: labels } }],
          containers: [container],
        },
      },
    },
  };
}

export interface PortSpec {
  readonly name: string;
  readonly port: number;
  readonly protocol?: 'TCP' | 'UDP';
}

export function servicePort({ name, port, protocol = 'TCP' }: PortSpec): object {
  return { name, port, protocol, targetPort: ECHO_PORT };
}

export function echoService({
  namespace,
  ports,
  spec = {},
}: {
  readonly namespace: string;
  readonly ports: readonly PortSpec[];
  readonly spec?: object;
}): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name: 'echo' },
    spec: {
      type: 'LoadBalancer',
      allocateLoadBalancerNodePorts: false,
      selector: { app: 'echo' },
      ports: ports.map(servicePort),
      ...spec,
    },
  };
}
