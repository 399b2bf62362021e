import type { SourceSnapshot } from '@weir/controller';
import type {
  FleetSettings,
  NamespaceObject,
  NodeObject,
  ObjectMeta,
  PodObject,
  ServiceObject,
  SliceEndpoint,
  SliceObject,
} from '@weir/model';
import { DEFAULT_SETTINGS } from '@weir/model';

export const podsPerService = 10;
const mostNamespaces = 1_000;
const nodes = 100;
/** Each Service has a port of its own, none of them reserved: placement is not what is measured. */
const firstPort = 12_000;

/** As in a cluster: an address is believed because a pod of that namespace has it. */
export const clusterSettings: FleetSettings = {
  ...DEFAULT_SETTINGS,
  trust: { kind: 'pods', serviceCidrs: ['10.96.0.0/12'] },
};

/**
 * A cluster with so many Services of ten pods each, spread over as many namespaces, a thousand at most. The nth slice is that of the nth
 * Service, and its pods are the ten from 10 × n; all lists are sorted as a source sorts them.
 */
export function clusterOf(services: number): SourceSnapshot {
  const namespaces = Math.min(services, mostNamespaces);
  const all = Array.from({ length: services }, (_, index) => Math.floor((index * namespaces) / services)).map(
    serviceFor,
  );
  return {
    namespaces: Array.from({ length: namespaces }, (_, index): NamespaceObject => meta(namespaceName(index))),
    nodes: Array.from({ length: nodes }, (_, index) => nodeFor(index)),
    services: all,
    slices: all.map(sliceFor),
    pods: all.flatMap((service, index) =>
      Array.from({ length: podsPerService }, (_, pod) => podFor(service, pod, podAddress(index, pod))),
    ),
    policies: [],
    suspensions: [],
    problems: [],
  };
}

export function podFor({ namespace, name }: ServiceObject, pod: number | string, address: string): PodObject {
  return { namespace, name: `${name}-${pod}`, ips: [address], hostNetwork: false };
}

/** Addresses of pods that come later have a `generation` of their own, from 1. */
export function podAddress(service: number, pod: number, generation = 0): string {
  const number = generation === 0 ? service * podsPerService + pod : generation * podsPerService + pod;
  const net = (generation === 0 ? 128 : 160) + (number >> 16);
  return `10.${net}.${(number >> 8) & 255}.${number & 255}`;
}

export function endpointAt(address: string): SliceEndpoint {
  return { addresses: [address], zone: null, ready: true, serving: true, terminating: false };
}

function serviceFor(namespace: number, index: number): ServiceObject {
  return {
    ...meta(`web-${String(index).padStart(5, '0')}`),
    namespace: namespaceName(namespace),
    type: 'LoadBalancer',
    loadBalancerClass: clusterSettings.loadBalancerClass,
    ports: [{ name: null, port: firstPort + index, protocol: 'TCP', appProtocol: null, nodePort: null }],
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

function sliceFor({ namespace, name }: ServiceObject, index: number): SliceObject {
  return {
    ...meta(`${name}-slice`),
    namespace,
    serviceName: name,
    addressType: 'IPv4',
    ports: [{ name: null, port: 8080, protocol: 'TCP' }],
    endpoints: Array.from({ length: podsPerService }, (_, pod) => endpointAt(podAddress(index, pod))),
  };
}

function nodeFor(index: number): NodeObject {
  return {
    ...meta(`node-${String(index).padStart(3, '0')}`),
    labels: { role: 'loadbalancer' },
    internalIPs: [`192.168.0.${index + 1}`],
    externalIPs: [],
    unschedulable: false,
  };
}

function namespaceName(index: number): string {
  return `tenant-${String(index).padStart(4, '0')}`;
}

function meta(name: string): ObjectMeta {
  return { uid: `uid-${name}`, name, labels: {}, annotations: {}, createdAt: null };
}
