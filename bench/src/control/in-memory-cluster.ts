import type { Source, SourceSnapshot } from '@weir/controller';
import {
  DEFAULT_FLEET_SETTINGS,
  type FleetSettings,
  type NamespaceObject,
  type NodeObject,
  type ObjectMeta,
  type PodObject,
  type ServiceObject,
  type SliceEndpoint,
  type SliceObject,
  type SuspensionOrigin,
} from '@weir/model';

export const PODS_PER_SERVICE = 10;
const MAX_NAMESPACES = 1_000;
const NODE_COUNT = 100;
/** Port of the first Service. Every Service has a different port that is not reserved, so that there are no port conflicts. */
const FIRST_PORT = 12_000;

/** Settings with which an endpoint is trusted if a pod of the endpoint's namespace has the endpoint's address, as in a real cluster. */
export const IN_MEMORY_CLUSTER_SETTINGS: FleetSettings = {
  ...DEFAULT_FLEET_SETTINGS,
  trust: { kind: 'pods', serviceCidrs: ['10.96.0.0/12'] },
};

/**
 * Returns a cluster with this number of Services in at most a thousand namespaces. Every Service has ten pods and one EndpointSlice.
 * `slices[n]` and the ten pods from `pods[10 * n]` belong to `services[n]`. All lists are in the order in which a source sorts them.
 */
export function inMemoryCluster(services: number): SourceSnapshot {
  const namespaces = Math.min(services, MAX_NAMESPACES);
  const allServices = Array.from({ length: services }, (_, index) => Math.floor((index * namespaces) / services)).map(
    serviceFor,
  );
  return {
    namespaces: Array.from({ length: namespaces }, (_, index): NamespaceObject => objectMeta(namespaceName(index))),
    nodes: Array.from({ length: NODE_COUNT }, (_, index) => nodeFor(index)),
    services: allServices,
    slices: allServices.map(sliceFor),
    pods: allServices.flatMap((service, index) =>
      Array.from({ length: PODS_PER_SERVICE }, (_, pod) => podFor(service, pod, podAddress(index, pod))),
    ),
    policies: [],
    suspensions: [],
    problems: [],
  };
}

export function podFor({ namespace, name }: ServiceObject, pod: number | string, address: string): PodObject {
  return { namespace, name: `${name}-${pod}`, ips: [address], hostNetwork: false };
}

/**
 * Returns the address of a pod. `generation` is 0 for the first pod, and higher for each replacement, because a replacement has another
 * address.
 */
export function podAddress(service: number, pod: number, generation = 0): string {
  const number = generation === 0 ? service * PODS_PER_SERVICE + pod : generation * PODS_PER_SERVICE + pod;
  const net = (generation === 0 ? 128 : 160) + (number >> 16);
  return `10.${net}.${(number >> 8) & 255}.${number & 255}`;
}

export function readyEndpoint(address: string): SliceEndpoint {
  return { addresses: [address], zone: null, ready: true, serving: true, terminating: false };
}

function serviceFor(namespace: number, index: number): ServiceObject {
  return {
    ...objectMeta(`web-${String(index).padStart(5, '0')}`),
    namespace: namespaceName(namespace),
    type: 'LoadBalancer',
    loadBalancerClass: IN_MEMORY_CLUSTER_SETTINGS.loadBalancerClass,
    ports: [{ name: null, port: FIRST_PORT + index, protocol: 'TCP', appProtocol: null, nodePort: null }],
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
    ...objectMeta(`${name}-slice`),
    namespace,
    serviceName: name,
    addressType: 'IPv4',
    ports: [{ name: null, port: 8080, protocol: 'TCP' }],
    endpoints: Array.from({ length: PODS_PER_SERVICE }, (_, pod) => readyEndpoint(podAddress(index, pod))),
  };
}

function nodeFor(index: number): NodeObject {
  return {
    ...objectMeta(`node-${String(index).padStart(3, '0')}`),
    labels: { role: 'loadbalancer' },
    internalIPs: [`192.168.0.${index + 1}`],
    externalIPs: [],
    unschedulable: false,
  };
}

function namespaceName(index: number): string {
  return `tenant-${String(index).padStart(4, '0')}`;
}

function objectMeta(name: string): ObjectMeta {
  return { uid: `uid-${name}`, name, labels: {}, annotations: {}, createdAt: null };
}

/** A source of objects in memory. Replaces an API server, because an API server would need minutes to store ten thousand Services. */
export class InMemorySource implements Source {
  readonly kind = 'kubernetes';
  #snapshot: SourceSnapshot;
  readonly #listeners = new Set<(changedAt?: number) => void>();

  constructor(snapshot: SourceSnapshot) {
    this.#snapshot = snapshot;
  }

  replace(snapshot: SourceSnapshot, changedAt?: number): void {
    this.#snapshot = snapshot;
    for (const listener of this.#listeners) listener(changedAt);
  }

  async synced(): Promise<void> {}

  snapshot(): SourceSnapshot {
    return this.#snapshot;
  }

  onChange(listener: (changedAt?: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  originOf(): SuspensionOrigin {
    return { kind: 'kubernetes' };
  }

  async isDeleted(): Promise<boolean> {
    return false;
  }

  async close(): Promise<void> {}
}
