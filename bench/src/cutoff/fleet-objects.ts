// The Kubernetes objects of the fleet: nodes, and a Service with its EndpointSlice for each of the two tenants.
import {
  type BenchNode,
  CONNECTION_KINDS,
  type ConnectionKind,
  OTHER_ENDPOINT,
  OTHER_PORT,
  OTHER_TENANT,
  TARGET_ENDPOINT,
  TARGET_PORTS,
  TARGET_TENANT,
} from './topology.ts';

export const SERVICE = 'play';
const APP_PROTOCOLS: Readonly<Partial<Record<ConnectionKind, string>>> = {
  websocket: 'http',
  http2: 'kubernetes.io/h2c',
};

type Port = {
  readonly name: string;
  readonly port: number;
  readonly protocol: 'TCP' | 'UDP';
  readonly appProtocol?: string;
};

/** Returns the objects in an order in which they can be applied. */
export function fleetObjects(nodes: readonly BenchNode[]): readonly object[] {
  const targetPorts = CONNECTION_KINDS.map((kind): Port => {
    const { [kind]: appProtocol } = APP_PROTOCOLS;
    const protocol = kind === 'udp' ? 'UDP' : 'TCP';
    return { name: kind, port: TARGET_PORTS[kind], protocol, ...(appProtocol === undefined ? {} : { appProtocol }) };
  });
  return [
    ...nodes.map(({ name }) => ({
      ...{ apiVersion: 'v1', kind: 'Node' },
      metadata: { name, labels: { role: 'loadbalancer' } },
    })),
    ...serviceObjects(TARGET_TENANT, TARGET_ENDPOINT, targetPorts),
    ...serviceObjects(OTHER_TENANT, OTHER_ENDPOINT, [{ name: 'echo', port: OTHER_PORT, protocol: 'TCP' }]),
  ];
}

/** Returns a namespace with a Service. The Service has no selector, so that no other controller writes its EndpointSlices. */
function serviceObjects(namespace: string, endpoint: string, ports: readonly Port[]): object[] {
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace, name: SERVICE },
      spec: {
        type: 'LoadBalancer',
        loadBalancerClass: 'weir.dev/weir',
        allocateLoadBalancerNodePorts: false,
        ports,
      },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { namespace, name: SERVICE, labels: { 'kubernetes.io/service-name': SERVICE } },
      addressType: 'IPv4',
      ports,
      endpoints: [{ addresses: [endpoint], conditions: { ready: true } }],
    },
  ];
}
