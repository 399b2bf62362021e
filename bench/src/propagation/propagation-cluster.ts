import type { SourceSnapshot } from '@weir/controller';
import type { NamespaceObject, NodeObject, ObjectMeta, ServiceObject, SliceObject } from '@weir/model';
import { DEFAULT_FLEET_SETTINGS } from '@weir/model';
import { changedServices, type EndpointName, type NodeAddress, type SocketAddress, servicePort } from './topology.ts';

const MAX_NAMESPACES = 1_000;

export type PropagationLayout = {
  readonly services: number;
  readonly nodes: readonly NodeAddress[];
  readonly backends: Readonly<Record<EndpointName, SocketAddress>>;
};

/** Returns a cluster in which every Service has the endpoint A. Services whose endpoint changes are on all nodes, others on two. */
export function propagationCluster({ services, nodes, backends }: PropagationLayout): SourceSnapshot {
  const namespaces = Math.min(services, MAX_NAMESPACES);
  const changed = new Set(changedServices(services));
  const allServices = Array.from({ length: services }, (_, index) =>
    serviceFor(index, {
      namespace: namespaceName(Math.floor((index * namespaces) / services)),
      nodes: changed.has(index) ? nodes.length : undefined,
    }),
  );
  return {
    namespaces: Array.from({ length: namespaces }, (_, index): NamespaceObject => objectMeta(namespaceName(index))),
    nodes: nodes.map(nodeFor),
    services: allServices,
    slices: allServices.map((service) => sliceFor(service, backends.A)),
    pods: [],
    policies: [],
    suspensions: [],
    problems: [],
  };
}

/** Returns a copy of the cluster in which `services[index]` has another endpoint. Unchanged objects are not copied, as in a real source. */
export function withServiceEndpoint(cluster: SourceSnapshot, index: number, endpoint: SocketAddress): SourceSnapshot {
  const service = cluster.services[index];
  if (service === undefined) throw new Error(`no Service has the index ${index}`);
  return { ...cluster, slices: cluster.slices.with(index, sliceFor(service, endpoint)) };
}

function serviceFor(
  index: number,
  { namespace, nodes }: { readonly namespace: string; readonly nodes: number | undefined },
): ServiceObject {
  return {
    ...objectMeta(
      `web-${String(index).padStart(5, '0')}`,
      nodes === undefined ? {} : { 'weir.dev/nodes': String(nodes) },
    ),
    namespace,
    type: 'LoadBalancer',
    loadBalancerClass: DEFAULT_FLEET_SETTINGS.loadBalancerClass,
    ports: [{ name: null, port: servicePort(index), protocol: 'TCP', appProtocol: null, nodePort: null }],
    hasSelector: true,
    clientIpAffinitySeconds: null,
    sourceRanges: [],
    externalTrafficPolicy: 'Cluster',
    trafficDistribution: null,
    publishNotReadyAddresses: false,
    ipFamilies: ['IPv4'],
    publishedIPs: [],
    deleting: false,
  };
}

function sliceFor({ namespace, name }: ServiceObject, { host, port }: SocketAddress): SliceObject {
  return {
    ...objectMeta(`${name}-slice`),
    namespace,
    serviceName: name,
    addressType: 'IPv4',
    ports: [{ name: null, port, protocol: 'TCP' }],
    endpoints: [{ addresses: [host], zone: null, ready: true, serving: true, terminating: false }],
  };
}

function nodeFor({ name, address }: NodeAddress): NodeObject {
  return {
    ...objectMeta(name),
    labels: { role: 'loadbalancer' },
    internalIPs: [address],
    externalIPs: [],
    unschedulable: false,
  };
}

function namespaceName(index: number): string {
  return `tenant-${String(index).padStart(4, '0')}`;
}

function objectMeta(name: string, annotations: ObjectMeta['annotations'] = {}): ObjectMeta {
  return { uid: `uid-${name}`, name, labels: {}, annotations, createdAt: null };
}
