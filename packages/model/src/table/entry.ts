import type { HttpRoute } from '../http/route.ts';
import type { TenantLimits } from '../policy.ts';
import type { Problem } from '../problem.ts';
import type { AcceptedReason, DegradedReason, RefusalReason } from '../reason.ts';
import type { RuleRecord } from '../rules/rule.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { ErrorPages, OcspResponse } from '../snapshot.ts';

// One entry of the routing table. A table is stored, streamed and changed entry by entry.
export type Entry =
  | NodeEntry
  | TenantEntry
  | ServiceEntry
  | CertificateEntry
  | ErrorPagesEntry
  | ListenerEntry
  | HttpRouteEntry
  | EndpointsEntry
  | ProblemEntry;

export type Protocol = 'TCP' | 'UDP';

/** A node with the label `role=loadbalancer`. The proxy of the node binds `bindAddresses`; clients use `publishedAddresses`. */
export interface NodeEntry {
  readonly kind: 'node';
  readonly id: string;
  readonly name: string;
  readonly bindAddresses: readonly string[];
  readonly publishedAddresses: readonly string[];
  /** The label `topology.kubernetes.io/zone`; null without the label. */
  readonly zone: string | null;
  /** The label `weir.dev/pool`, or the default pool. */
  readonly pool: string;
}

export interface TenantEntry {
  readonly kind: 'tenant';
  readonly id: string;
  readonly name: string;
  /** Name of the TenantPolicy; null for the fleet's default policy. */
  readonly policy: string | null;
  readonly namespaces: readonly string[];
  readonly limits: TenantLimits;
  /** The limits of the policy; absent unless a rule throttles the tenant, so that `limits` are lower. */
  readonly policyLimits?: TenantLimits;
  /** What rules of the policy do to the tenant; absent if they do nothing. */
  readonly rules?: readonly RuleRecord[];
  readonly used: { readonly services: number; readonly ports: number };
}

/** A Service that belongs to Weir. Refused Services have an entry too, because the console shows them as well. */
export interface ServiceEntry {
  readonly kind: 'service';
  readonly id: string;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Name of the tenant; null if the Service belongs to no tenant (`TenantConflict`). */
  readonly tenant: string | null;
  readonly accepted: StatusReason<AcceptedReason>;
  readonly degraded: readonly StatusReason<DegradedReason>[];
  /** The last settings that were accepted; null if the Service is not served. */
  readonly settings: ServiceSettings | null;
  readonly ports: readonly PortEntry[];
  /** The node pool in which the Service is placed; null if the Service is not served. */
  readonly pool: string | null;
  /** Sorted names of the nodes on which ports are allocated to the Service. */
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
  /** Why this port of an accepted Service is not served; null if the port is served. */
  readonly error: StatusReason<RefusalReason> | null;
  /**
   * The former name of a renamed port, while the EndpointSlices still use that name. Null if the port had no name; absent if the port was
   * not renamed.
   */
  readonly formerName?: string | null;
  /**
   * True if the Service owns the port exclusively, because the Service got the port before the port became a shared port of the fleet.
   * Stays true while no node serves the port.
   */
  readonly alone?: true;
}

/** A certificate for the TLS termination of a Service, from the last accepted version of one of its Secrets. */
export interface CertificateEntry {
  readonly kind: 'certificate';
  readonly id: string;
  /** UID of the Service. */
  readonly service: string;
  /** The certificates in PEM: the server's certificate first, then the intermediate certificates. */
  readonly chain: string;
  /** Identifies the private key: see `CertificatePair`. */
  readonly keyDigest: string;
  /** The sealed private key; absent for readers that may not read keys. */
  readonly sealedKey?: string;
  /** End of the validity, milliseconds since the epoch. */
  readonly notAfter: number;
  /**
   * PEM of the CAs that must have issued the client's certificate; null if clients need no certificate. Only the first certificate of a
   * Service has the CAs; they apply to the clients of all its certificates.
   */
  readonly clientAuthorities: string | null;
  /**
   * PEM of the CAs that must have issued the endpoints' certificates; absent if the endpoints expect no TLS. Only the first certificate of
   * a Service has the CAs.
   */
  readonly backendAuthorities?: string;
  /** Present if the proxies show the certificate to endpoints, and not to clients. */
  readonly forEndpoints?: true;
  /** The OCSP response that clients get with the certificate; absent if there is none. */
  readonly ocsp?: OcspResponse;
}

/** The pages with which the proxies answer requests to a Service themselves. */
export interface ErrorPagesEntry {
  readonly kind: 'error-pages';
  readonly id: string;
  /** UID of the Service. */
  readonly service: string;
  readonly pages: ErrorPages;
}

/** A binding (node, address, protocol, port) that is allocated to a Service. */
export interface ListenerEntry {
  readonly kind: 'listener';
  readonly id: string;
  readonly node: string;
  readonly address: string;
  readonly port: number;
  readonly protocol: Protocol;
  /** UID of the Service. */
  readonly service: string;
  /**
   * True if the Service shares the binding with other Services and gets only the clients that ask for one of its hosts. Each of these
   * Services has its own entry. Absent if the Service gets all clients.
   */
  readonly shared?: true;
  /**
   * Present if the Service has the binding as a backend of HTTP routes: the port of the Service whose endpoints get the requests. Only HTTP
   * routes lead to the Service then, whatever its hosts are. Only a shared binding has backends, and a Service can be a backend with several
   * of its ports.
   */
  readonly backendPort?: number;
}

/** Returns the port of the Service whose endpoints get what arrives at the binding. */
export function servicePortOf({ port, backendPort }: Pick<ListenerEntry, 'port' | 'backendPort'>): number {
  return backendPort ?? port;
}

/**
 * An HTTP route that does not come from the annotations of a Service. The route gets requests at all shared TCP listeners with one of the
 * `ports`, on the nodes where one of its backends has a listener.
 */
export interface HttpRouteEntry {
  readonly kind: 'http-route';
  readonly id: string;
  /** Ports of listeners. Not empty, and without duplicates. */
  readonly ports: readonly number[];
  /** A valid route, see `httpRouteMistakes`. Each backend has a listener entry with this `backendPort` for each of the `ports`. */
  readonly route: HttpRoute;
}

/** At most 100 endpoints that are in use for one port of a Service. */
export interface EndpointsEntry {
  readonly kind: 'endpoints';
  readonly id: string;
  /** UID of the Service. */
  readonly service: string;
  readonly port: number;
  readonly protocol: Protocol;
  readonly endpoints: readonly Endpoint[];
  /** The number of endpoints in the same EndpointSlice that are not used because they are not ready. */
  readonly unready: number;
  /** True if `endpoints` are terminating but still serve, and are used because no endpoint of the port is ready. */
  readonly leaving?: true;
}

export interface Endpoint {
  readonly address: string;
  readonly port: number;
  /** The first zone whose clients prefer the endpoint; absent if the slice names no zone. */
  readonly zone?: string;
  /** Further zones whose clients prefer the endpoint. */
  readonly otherZones?: readonly string[];
}

/** All zones whose clients prefer an endpoint. */
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
/**
 * Returns the id of a certificate entry. `position` is the position of the Secret in `certificateSecretsOf`; `endpoints` for
 * the certificate that the endpoints get.
 */
export const certificateId = (service: string, position: number | 'endpoints' = 0): string =>
  position === 0 ? `certificate/${service}` : `certificate/${service}/${position}`;

export const errorPagesId = (service: string): string => `error-pages/${service}`;

/** Returns the id of the entry of an exclusive listener. */
export function listenerId(binding: Pick<ListenerEntry, 'node' | 'address' | 'protocol' | 'port'>): string {
  return `listener/${binding.node}/${binding.address}/${binding.protocol}/${binding.port}`;
}

/** Returns the id of the listener entry of one Service that shares the listener. */
export function sharedListenerId(
  listener: Pick<ListenerEntry, 'node' | 'address' | 'protocol' | 'port' | 'service' | 'backendPort'>,
): string {
  const id = `${listenerId(listener)}/${listener.service}`;
  return listener.backendPort === undefined ? id : `${id}/${listener.backendPort}`;
}

/** Returns the id of the entry of an HTTP route. `route` is the id of the route. */
export const httpRouteId = (route: string): string => `http-route/${route}`;

/**
 * Returns the id of an endpoints entry. The endpoints of an EndpointSlice (`slice`) for one port are divided into chunks; `chunk` is the
 * index of the chunk.
 */
export function endpointsId(
  port: Pick<EndpointsEntry, 'service' | 'protocol' | 'port'>,
  slice: string,
  chunk: number,
): string {
  return `endpoints/${port.service}/${port.protocol}/${port.port}/${slice}/${chunk}`;
}

/** Returns `address|port`, which is unique among the endpoints of one port. */
export function endpointKey(endpoint: Endpoint): string {
  return `${endpoint.address}|${endpoint.port}`;
}
