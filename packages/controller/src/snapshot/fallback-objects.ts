// A controller that starts without the right to read a kind goes on with what the table in force was made of, as far as the table
// tells: it must neither take out of service what serves, nor grant what nobody can judge now.
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
import { fallbackPolicies } from './fallback-policies.ts';

/** Kinds for which the table can stand in. Of Services it tells too little, and Suspensions have a store of their own. */
export const FALLBACK_KINDS = ['Namespace', 'Node', 'EndpointSlice', 'Pod', 'TenantPolicy'] as const;
export type FallbackKind = (typeof FALLBACK_KINDS)[number];

type FallbackLists = Pick<Snapshot, 'namespaces' | 'nodes' | 'slices' | 'pods' | 'policies'>;

export interface FallbackObjects extends FallbackLists {
  /** Policies allow single addresses that are of no pod: of none that can be read, or that stands in. */
  readonly arePodsRead: boolean;
}

/** What can be read, and of what it cannot. */
export interface ReadableObjects {
  readonly pods: readonly PodObject[];
  readonly unreadableKinds: ReadonlySet<FallbackKind>;
}

/**
 * Objects from which the table in force would be made again. `before`: those made last, which stay, since translation takes objects
 * that are others for changed; but policies that were made without pods to read are made anew when there are some.
 */
export function fallbackObjectsFor(
  table: RoutingTable,
  { pods, unreadableKinds }: ReadableObjects,
  before?: FallbackObjects,
): FallbackObjects {
  const arePodsRead = !unreadableKinds.has('Pod');
  if (before?.arePodsRead === arePodsRead) return before;
  const services = entriesOf(table, 'service');
  const endpoints = entriesOf(table, 'endpoints');
  const tenants = entriesOf(table, 'tenant');
  const {
    namespaces,
    nodes,
    slices,
    pods: served,
  } = before ?? {
    namespaces: tenants.flatMap((tenant) => tenant.namespaces.map(namespaceOf)).sort(byName),
    nodes: entriesOf(table, 'node').map(nodeOf).sort(byName),
    slices: slicesFrom(services, endpoints),
    pods: podsFrom(services, endpoints),
  };
  const policies = fallbackPolicies({ tenants, services, endpoints, pods: arePodsRead ? pods : served });
  return Object.freeze({ namespaces, nodes, slices, pods: served, policies, arePodsRead });
}

/** The snapshot with something in place of each kind that could not be read. Policies select by labels, so they need namespaces. */
export function withFallbackObjects(
  snapshot: Snapshot,
  unread: ReadonlySet<FallbackKind>,
  { namespaces, nodes, slices, pods, policies }: FallbackObjects,
): Snapshot {
  return {
    ...snapshot,
    ...(unread.has('Namespace') && { namespaces }),
    ...(unread.has('Node') && { nodes }),
    ...(unread.has('EndpointSlice') && { slices }),
    ...(unread.has('Pod') && { pods }),
    ...((unread.has('TenantPolicy') || unread.has('Namespace')) && { policies }),
  };
}

/** Whether a Service of ours has an address: then proxies serve it, though no table tells of it. */
export function hasPublishedService({ services, settings }: Snapshot): boolean {
  return services.some((service) => service.publishedIPs.length > 0 && isOwned(service, settings));
}

const ZONE_LABEL = 'topology.kubernetes.io/zone';
const META = { annotations: {}, createdAt: null } as const;

function namespaceOf(name: string): NamespaceObject {
  return Object.freeze({ ...META, uid: '', name, labels: {} });
}

function nodeOf({ name, bindAddresses, publishedAddresses, zone, pool }: NodeEntry): NodeObject {
  const labels = {
    role: 'loadbalancer',
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

/** Those in use; which others there were the table does not tell. */
function slicesFrom(services: readonly ServiceEntry[], endpoints: readonly EndpointsEntry[]): SliceObject[] {
  const serviceOf = new Map(services.map((service) => [service.uid, service]));
  const slices = [...Map.groupBy(endpoints, sliceKeyOf).values()].flatMap((entries) => {
    const service = serviceOf.get(entries[0]?.service ?? '');
    return service === undefined ? [] : sliceOf(service, entries);
  });
  return slices.sort((a, b) => (a.namespace === b.namespace ? byName(a, b) : a.namespace < b.namespace ? -1 : 1));
}

/** The id of an entry ends with the name of its slice and the number of its chunk. */
function sliceNameOf({ id }: EndpointsEntry): string {
  return id.split('/').at(-2) ?? '';
}

function sliceKeyOf(entry: EndpointsEntry): string {
  return `${entry.service}/${sliceNameOf(entry)}`;
}

function sliceOf(service: ServiceEntry, entries: readonly EndpointsEntry[]): SliceObject[] {
  const [first] = entries;
  const all = entries.flatMap((entry) => entry.endpoints);
  const [some] = all;
  if (first === undefined || some === undefined) return [];
  const leaving = new Set(entries.filter((entry) => entry.leaving).flatMap((entry) => entry.endpoints.map(addressOf)));
  const zones = new Map(all.map((endpoint) => [endpoint.address, zonesOf(endpoint)]));
  const endpoints = [...zones].map(([address, hintedZones]) => ({
    addresses: [address],
    zone: hintedZones[0] ?? null,
    ...(hintedZones.length > 0 && { hintedZones }),
    ...(leaving.has(address) ? TERMINATING_CONDITIONS : READY_CONDITIONS),
  }));
  const addressType = some.address.includes(':') ? 'IPv6' : 'IPv4';
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

/** In one slice a port of the Service has one number. */
function slicePortsOf(service: ServiceEntry, entries: readonly EndpointsEntry[]): SlicePort[] {
  return service.ports.flatMap(({ name, port, protocol }) => {
    const entry = entries.find((each) => each.port === port && each.protocol === protocol && each.endpoints.length > 0);
    return entry === undefined ? [] : [{ name, port: entry.endpoints[0]?.port ?? null, protocol }];
  });
}

/** One for each namespace. On the host network, since that is how it may have the address of a node; it was believed before. */
function podsFrom(services: readonly ServiceEntry[], endpoints: readonly EndpointsEntry[]): PodObject[] {
  const places = new Map(services.map(({ uid, namespace }) => [uid, namespace]));
  const byNamespace = Map.groupBy(endpoints, ({ service }) => places.get(service) ?? '');
  const sorted = [...byNamespace].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([namespace, entries]) => {
    const ips = [...new Set(entries.flatMap((entry) => entry.endpoints.map(addressOf)))];
    return Object.freeze({ namespace, name: 'served', ips, hostNetwork: true });
  });
}
