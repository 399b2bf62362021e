// A controller that starts without the right to list a kind derives fallback objects of that kind from the published table. Therefore
// Services keep working as before. While policies cannot be read, tenants get no new grants.
import {
  DEFAULT_POOL,
  type Endpoint,
  type EndpointsEntry,
  entriesOf,
  isOwned,
  type NamespaceObject,
  type NodeEntry,
  type NodeObject,
  type PodObject,
  type RoutingTable,
  type ServiceEntry,
  type SliceObject,
  type SlicePort,
  type Snapshot,
  zonesOf,
} from '@weir/model';
import { LOAD_BALANCER_ROLE, ROLE_LABEL } from '../parse/cluster-objects.ts';
import { fallbackPolicies } from './fallback-policies.ts';

/**
 * Kinds whose objects can be derived from the table. Services are not in this list, because the table contains only part of each
 * Service. Suspensions are not in this list, because the store keeps them separately.
 */
export const FALLBACK_KINDS = ['Namespace', 'Node', 'EndpointSlice', 'Pod', 'TenantPolicy'] as const;
export type FallbackKind = (typeof FALLBACK_KINDS)[number];

type FallbackLists = Pick<Snapshot, 'namespaces' | 'nodes' | 'slices' | 'pods' | 'policies'>;

export interface FallbackObjects extends FallbackLists {
  /**
   * Whether the pods could be read when the policies were derived. The derived policies depend on the pods, because they allow exactly the
   * endpoints that belong to no pod.
   */
  readonly arePodsReadable: boolean;
}

export interface ReadableObjects {
  /** Empty if pods are unreadable. */
  readonly pods: readonly PodObject[];
  readonly unreadableKinds: ReadonlySet<FallbackKind>;
}

/**
 * Returns objects from which translation would produce the published table again. Objects in `before`, the previous result, are
 * reused, because translation recomputes everything that depends on a new object. Policies are derived again when pods become
 * readable or unreadable.
 */
export function fallbackObjectsFor(
  table: RoutingTable,
  { pods, unreadableKinds }: ReadableObjects,
  before?: FallbackObjects,
): FallbackObjects {
  const arePodsReadable = !unreadableKinds.has('Pod');
  if (before?.arePodsReadable === arePodsReadable) return before;
  const services = entriesOf(table, 'service');
  const endpoints = entriesOf(table, 'endpoints');
  const tenants = entriesOf(table, 'tenant');
  const {
    namespaces,
    nodes,
    slices,
    pods: podsInTable,
  } = before ?? {
    namespaces: tenants.flatMap((tenant) => tenant.namespaces.map(namespaceObjectOf)).sort(byName),
    nodes: entriesOf(table, 'node').map(nodeOf).sort(byName),
    slices: slicesFrom(services, endpoints),
    pods: podsFrom(services, endpoints),
  };
  const policies = fallbackPolicies({ tenants, services, endpoints, pods: arePodsReadable ? pods : podsInTable });
  return Object.freeze({ namespaces, nodes, slices, pods: podsInTable, policies, arePodsReadable });
}

/**
 * Replaces the lists of unreadable kinds by fallback objects. Policies are also replaced if namespaces are unreadable, because
 * policies select namespaces by labels.
 */
export function withFallbackObjects(
  snapshot: Snapshot,
  unreadableKinds: ReadonlySet<FallbackKind>,
  { namespaces, nodes, slices, pods, policies }: FallbackObjects,
): Snapshot {
  return {
    ...snapshot,
    ...(unreadableKinds.has('Namespace') && { namespaces }),
    ...(unreadableKinds.has('Node') && { nodes }),
    ...(unreadableKinds.has('EndpointSlice') && { slices }),
    ...(unreadableKinds.has('Pod') && { pods }),
    ...((unreadableKinds.has('TenantPolicy') || unreadableKinds.has('Namespace')) && { policies }),
  };
}

/** Whether any Service of this fleet has a published address. Proxies serve such a Service even if the store has no table. */
export function hasPublishedService({ services, settings }: Snapshot): boolean {
  return services.some((service) => service.publishedIPs.length > 0 && isOwned(service, settings));
}

const ZONE_LABEL = 'topology.kubernetes.io/zone';
const META = { annotations: {}, createdAt: null } as const;

function namespaceObjectOf(name: string): NamespaceObject {
  return Object.freeze({ ...META, uid: '', name, labels: {} });
}

function nodeOf({ name, bindAddresses, publishedAddresses, zone, pool }: NodeEntry): NodeObject {
  const labels = {
    [ROLE_LABEL]: LOAD_BALANCER_ROLE,
    'weir.dev/pool': pool || DEFAULT_POOL,
    ...(zone !== null && { [ZONE_LABEL]: zone }),
  };
  const internalIPs = bindAddresses;
  return Object.freeze({
    ...META,
    uid: '',
    name,
    labels,
    internalIPs,
    externalIPs: publishedAddresses,
    unschedulable: false,
  });
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}

/** Returns slices that contain the endpoints in use. The table contains no other endpoints. */
function slicesFrom(services: readonly ServiceEntry[], endpoints: readonly EndpointsEntry[]): SliceObject[] {
  const serviceOf = new Map(services.map((service) => [service.uid, service]));
  const slices = [...Map.groupBy(endpoints, sliceKeyOf).values()].flatMap((entries) => {
    const service = serviceOf.get(entries[0]?.service ?? '');
    return service === undefined ? [] : sliceOf(service, entries);
  });
  return slices.sort((a, b) => (a.namespace === b.namespace ? byName(a, b) : a.namespace < b.namespace ? -1 : 1));
}

/** Reads the name of the slice from the id of an entry. The id ends with `SLICE/CHUNK`. */
function sliceNameOf({ id }: EndpointsEntry): string {
  return id.split('/').at(-2) ?? '';
}

function sliceKeyOf(entry: EndpointsEntry): string {
  return `${entry.service}/${sliceNameOf(entry)}`;
}

function sliceOf(service: ServiceEntry, entries: readonly EndpointsEntry[]): SliceObject[] {
  const [first] = entries;
  const all = entries.flatMap((entry) => entry.endpoints);
  const [firstEndpoint] = all;
  if (first === undefined || firstEndpoint === undefined) return [];
  const leaving = new Set(entries.filter((entry) => entry.leaving).flatMap((entry) => entry.endpoints.map(addressOf)));
  const zones = new Map(all.map((endpoint) => [endpoint.address, zonesOf(endpoint)]));
  const endpoints = [...zones].map(([address, hintedZones]) => ({
    addresses: [address],
    zone: hintedZones[0] ?? null,
    ...(hintedZones.length > 0 && { hintedZones }),
    ...(leaving.has(address) ? TERMINATING_CONDITIONS : READY_CONDITIONS),
  }));
  const addressType = firstEndpoint.address.includes(':') ? 'IPv6' : 'IPv4';
  const name = sliceNameOf(first);
  const { namespace, name: serviceName } = service;
  const ports = slicePortsOf(service, entries);
  return [Object.freeze({ ...META, uid: '', labels: {}, namespace, name, serviceName, addressType, ports, endpoints })];
}

const READY_CONDITIONS = { ready: true, serving: true, terminating: false };
const TERMINATING_CONDITIONS = { ready: false, serving: true, terminating: true };

function addressOf({ address }: Endpoint): string {
  return address;
}

/** Returns the ports of a slice. Within a slice, each port of the Service maps to one port number. */
function slicePortsOf(service: ServiceEntry, entries: readonly EndpointsEntry[]): SlicePort[] {
  return service.ports.flatMap(({ name, port, protocol }) => {
    const entry = entries.find((each) => each.port === port && each.protocol === protocol && each.endpoints.length > 0);
    return entry === undefined ? [] : [{ name, port: entry.endpoints[0]?.port ?? null, protocol }];
  });
}

/**
 * Returns one pod per namespace, with the addresses of all endpoints in that namespace. The pod is on the host network, because the
 * addresses may include node addresses.
 */
function podsFrom(services: readonly ServiceEntry[], endpoints: readonly EndpointsEntry[]): PodObject[] {
  const namespaceOf = new Map(services.map(({ uid, namespace }) => [uid, namespace]));
  const byNamespace = Map.groupBy(endpoints, ({ service }) => namespaceOf.get(service) ?? '');
  const sorted = [...byNamespace].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([namespace, entries]) => {
    const ips = [...new Set(entries.flatMap((entry) => entry.endpoints.map(addressOf)))];
    return Object.freeze({ namespace, name: 'served', ips, hostNetwork: true });
  });
}
