import type { TenantLimits } from '../policy.ts';
import type { Problem } from '../problem.ts';
import type { AcceptedReason, DegradedReason, RefusalReason } from '../reason.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';

// One entry of the routing table: the unit that is stored, streamed and replaced whole.
export type Entry =
  | NodeEntry
  | TenantEntry
  | ServiceEntry
  | CertificateEntry
  | ListenerEntry
  | EndpointsEntry
  | ProblemEntry;

export type Protocol = 'TCP' | 'UDP';

/** A `role=loadbalancer` node: where its proxy binds, and what is published for it. */
export interface NodeEntry {
  readonly kind: 'node';
  readonly id: string;
  readonly name: string;
  readonly bindAddresses: readonly string[];
  readonly publishedAddresses: readonly string[];
  /** `topology.kubernetes.io/zone`; null where nodes have none. */
  readonly zone: string | null;
  /** `weir.dev/pool`, or the default one. */
  readonly pool: string;
}

export interface TenantEntry {
  readonly kind: 'tenant';
  readonly id: string;
  readonly name: string;
  /** Name of the TenantPolicy; null: the fleet's default. */
  readonly policy: string | null;
  readonly namespaces: readonly string[];
  readonly limits: TenantLimits;
  readonly used: { readonly services: number; readonly ports: number };
}

/** Every Service that Weir takes has one, refused ones included: it is also what the console shows. */
export interface ServiceEntry {
  readonly kind: 'service';
  readonly id: string;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Null while the tenant is in dispute (`TenantConflict`). */
  readonly tenant: string | null;
  readonly accepted: StatusReason<AcceptedReason>;
  readonly degraded: readonly StatusReason<DegradedReason>[];
  /** The last accepted ones; null: not served. */
  readonly settings: ServiceSettings | null;
  readonly ports: readonly PortEntry[];
  /** The node pool that it is placed in; null: it is not served. */
  readonly pool: string | null;
  /** Names of the nodes that hold its ports, sorted. */
  readonly nodes: readonly string[];
}

export interface StatusReason<R> {
  readonly reason: R;
  readonly message: string;
}

export interface PortEntry {
  readonly name: string | null;
  readonly port: number;
  readonly protocol: string;
  /** Why this port of an otherwise good Service is not served. */
  readonly error: StatusReason<RefusalReason> | null;
  /** While its slices still have it under another name, after it was renamed: that one. */
  readonly formerName?: string | null;
  /** It has all clients of a port that the fleet shares by now: from before it did, also while no node is there to serve it. */
  readonly alone?: true;
}

/** What a Service shows its clients where TLS ends here, and whom it believes: the last that was accepted. */
export interface CertificateEntry {
  readonly kind: 'certificate';
  readonly id: string;
  /** UID of the Service. */
  readonly service: string;
  /** PEM, the certificate of the server first. */
  readonly chain: string;
  /** Tells which private key belongs to it: see `CertificatePair`. */
  readonly keyDigest: string;
  /** Of those that may read keys; absent: this reader may not. */
  readonly sealedKey?: string;
  /** Until when it is good, milliseconds since the epoch. */
  readonly notAfter: number;
  /** PEM of the CAs of the certificates that clients must show; null: they need none. */
  readonly clientAuthorities: string | null;
}

/** (address, protocol, port) on a node: the unit that is owned. */
export interface ListenerEntry {
  readonly kind: 'listener';
  readonly id: string;
  readonly node: string;
  readonly address: string;
  readonly port: number;
  readonly protocol: Protocol;
  /** UID of the Service that holds it. */
  readonly service: string;
  /** It has only the clients that ask for one of its hosts: there is an entry for each Service that shares the place. Absent: all. */
  readonly shared?: true;
}

/** At most 100 endpoints of one port of a Service that are in use now. */
export interface EndpointsEntry {
  readonly kind: 'endpoints';
  readonly id: string;
  /** UID of the Service. */
  readonly service: string;
  readonly port: number;
  readonly protocol: Protocol;
  readonly endpoints: readonly Endpoint[];
  /** Endpoints of the same slice that are not in use (not ready). */
  readonly unready: number;
  /** None of the port is ready: these serve on while they terminate. */
  readonly leaving?: true;
}

export interface Endpoint {
  readonly address: string;
  readonly port: number;
  /** For the clients of which zone it is meant; absent where the slice names none. */
  readonly zone?: string;
  /** For those of which zones else. */
  readonly otherZones?: readonly string[];
}

/** All zones that an endpoint is meant for. */
export function zonesOf({ zone, otherZones = [] }: Pick<Endpoint, 'zone' | 'otherZones'>): readonly string[] {
  return zone === undefined ? otherZones : [zone, ...otherZones];
}

export interface ProblemEntry {
  readonly kind: 'problem';
  readonly id: string;
  readonly problem: Problem;
}

export const MAX_ENDPOINTS_PER_ENTRY = 100;
export const nodeId = (name: string): string => `node/${name}`;
export const tenantId = (name: string): string => `tenant/${name}`;
export const serviceId = (uid: string): string => `service/${uid}`;
export const certificateId = (service: string): string => `certificate/${service}`;

/** The id of the listener entry of (address, protocol, port) on a node. */
export function listenerId(place: Pick<ListenerEntry, 'node' | 'address' | 'protocol' | 'port'>): string {
  return `listener/${place.node}/${place.address}/${place.protocol}/${place.port}`;
}

/** The id of the entry by which one of several Services has its share of (address, protocol, port) on a node. */
export function sharedListenerId(
  share: Pick<ListenerEntry, 'node' | 'address' | 'protocol' | 'port' | 'service'>,
): string {
  return `${listenerId(share)}/${share.service}`;
}

/** The id of the `chunk`th entry of what one slice gives to one port of a Service. */
export function endpointsId(
  port: Pick<EndpointsEntry, 'service' | 'protocol' | 'port'>,
  slice: string,
  chunk: number,
): string {
  return `endpoints/${port.service}/${port.protocol}/${port.port}/${slice}/${chunk}`;
}

/** `address|port`: what tells two endpoints of one port apart. */
export function endpointKey(endpoint: Endpoint): string {
  return `${endpoint.address}|${endpoint.port}`;
}
