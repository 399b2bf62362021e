import { ECHO_IMAGE } from '@weir/tools';

// Kubernetes objects with only the fields that the tests need.

interface LoadBalancerOptions {
  readonly annotations?: Readonly<Record<string, string>>;
}

export const namespaceManifest = (name: string, labels: Readonly<Record<string, string>> = {}): object => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});

/** Returns the Service `namespace/name`; `spec` overrides the default selector `app: name` and port 80. */
export const loadBalancer = (
  path: string,
  spec: object = {},
  { annotations = {} }: LoadBalancerOptions = {},
): object => {
  const [namespace = '', name = ''] = path.split('/');
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name, annotations },
    spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80, targetPort: 'main' }], ...spec },
  };
};

/** Returns an EndpointSlice with one port for the Service `namespace/name`, as a user would write it. */
export const endpointSlice = (path: string, addresses: readonly string[], overrides: object = {}): object => {
  const [namespace = '', service = ''] = path.split('/');
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace, name: `${service}-by-hand`, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ name: '', port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ...overrides,
  };
};

/** Returns a TenantPolicy for the namespaces with the label `team: name`. */
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

// A Deployment of pods that return their names, and a Service for these pods.

/** The TCP and UDP port of every echo pod. */
const ECHO_PORT = 7000;

export interface EchoPodOptions {
  readonly namespace: string;
  readonly replicas: number;
  /** How long a deleted pod still responds (the duration of its preStop hook), so that the proxies learn of the deletion first. */
  readonly preStopSeconds?: number;
}

/** Returns a Deployment whose pods are spread over the nodes. */
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
