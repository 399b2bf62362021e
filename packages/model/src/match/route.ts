import { isJsonEqual } from '../compare.ts';
import type { ServiceSettings, TlsPort } from '../settings/service-settings.ts';
import {
  type CertificateEntry,
  type Endpoint,
  type EndpointsEntry,
  type ErrorPagesEntry,
  endpointKey,
  type ListenerEntry,
  type ServiceEntry,
  servicePortOf,
  zonesOf,
} from '../table/entry.ts';
import { compileNetworks, type NetworkSet } from './networks.ts';

/** Everything that a worker needs to serve a connection of a listener. Immutable: a change creates a new route. */
export interface Route {
  readonly key: RouteKey;
  readonly listener: ListenerEntry;
  readonly service: ServiceEntry;
  readonly settings: ServiceSettings;
  readonly endpoints: readonly Endpoint[];
  /**
   * The certificates in the order of preference. Empty if TLS is not terminated at the listener, or if the certificates are missing. While
   * they are missing, the route serves no client.
   */
  readonly certificates: readonly CertificateEntry[];
  /** The certificate that the endpoints get; absent if they get none, or if it is missing. */
  readonly endpointCertificate?: CertificateEntry;
  /** The pages of answers that the proxies make themselves; undefined for Weir's own pages. */
  readonly errorPages: ErrorPagesEntry | undefined;
  /** The zone of the listener's node; null if the node has none. */
  readonly zone: string | null;
  /** Whether the Service's `loadBalancerSourceRanges` admit the address of a client. */
  readonly allowsSource: (client: Pick<Client, 'address'>) => boolean;
}

/** The port of plain HTTP, where TLS is never expected. */
export const PLAIN_HTTP_PORT = 80;

/** Whether connections of a route begin with a TLS ClientHello. Port 80 of a Service with TLS is plain HTTP. */
export function expectsClientHello(route: Pick<Route, 'settings' | 'listener'>): boolean {
  const { settings, listener } = route;
  if (settings.tls !== undefined) return terminatingTlsPort(route) !== undefined;
  return settings.tlsPassthrough && listener.port !== PLAIN_HTTP_PORT;
}

/** Returns the settings of TLS termination at the listener; undefined if TLS is not terminated there. */
export function terminatingTlsPort({ settings, listener }: Pick<Route, 'settings' | 'listener'>): TlsPort | undefined {
  return listener.protocol === 'TCP' ? settings.tls?.ports.find(({ port }) => port === listener.port) : undefined;
}

/** Whether the proxies relay HTTP requests at the listener. */
export function relaysHttp({ settings, listener }: Pick<Route, 'settings' | 'listener'>): boolean {
  return listener.protocol === 'TCP' && settings.httpPorts?.includes(servicePortOf(listener)) === true;
}

/** Whether the Service has the listener as a backend. Only HTTP routes then lead from this listener to the Service. */
export function isBackend({ listener }: Pick<Route, 'listener'>): boolean {
  return listener.backendPort !== undefined;
}

/** Whether the endpoints of the route get HTTP/2 without TLS. */
export function endpointsSpeakHttp2({ settings, listener }: Pick<Route, 'settings' | 'listener'>): boolean {
  return listener.protocol === 'TCP' && settings.http2Ports?.includes(servicePortOf(listener)) === true;
}

/** Returns the TLS port to which the proxies redirect the HTTP requests of the listener; undefined if they relay the requests. */
export function httpsRedirectPort(route: Pick<Route, 'settings' | 'listener'>): number | undefined {
  const { settings, listener } = route;
  const isPlainHttp = listener.protocol === 'TCP' && listener.port === PLAIN_HTTP_PORT;
  // HTTP routes say themselves what they redirect.
  return isPlainHttp && !isBackend(route) ? settings.tls?.httpsRedirectPort : undefined;
}

/** Whether the endpoints of the route expect TLS from the proxies. */
export function endpointsExpectTls({ settings, listener }: Pick<Route, 'settings' | 'listener'>): boolean {
  return listener.protocol === 'TCP' && settings.tls?.backend?.ports.includes(servicePortOf(listener)) === true;
}

/** What the proxies need for TLS to the endpoints of a route. */
export interface EndpointTlsTerms {
  readonly serverName: string;
  /** PEM of the CAs; undefined while the CAs are missing. The proxies must not connect to an endpoint then. */
  readonly authorities: string | undefined;
  /** The certificate for the endpoints; null if they get none, undefined while it is missing. The proxies must not connect then either. */
  readonly certificate: CertificateEntry | null | undefined;
}

/** Returns undefined if the endpoints of the route expect no TLS from the proxies. */
export function endpointTlsTerms(
  route: Pick<Route, 'settings' | 'listener' | 'certificates' | 'endpointCertificate'>,
): EndpointTlsTerms | undefined {
  const { backend } = route.settings.tls ?? {};
  if (backend === undefined || !endpointsExpectTls(route)) return undefined;
  // Only the first certificate of a Service has the CAs. The route may lack it for a short time.
  const authorities = route.certificates.find(
    ({ backendAuthorities }) => backendAuthorities !== undefined,
  )?.backendAuthorities;
  const { serverName, certificateSecret } = backend;
  return { serverName, authorities, certificate: certificateSecret === undefined ? null : route.endpointCertificate };
}

/** Whether two routes get their certificates and the CAs of client certificates from the same Secrets. */
export function hasSameCredentials(one: Pick<Route, 'service' | 'settings'>, other: typeof one): boolean {
  return (
    one.service.namespace === other.service.namespace &&
    one.settings.tls?.secret === other.settings.tls?.secret &&
    one.settings.tls?.otherSecrets?.join() === other.settings.tls?.otherSecrets?.join() &&
    one.settings.tls?.clientCaSecret === other.settings.tls?.clientCaSecret
  );
}

/** The identity of a listener on its node, such as `TCP/192.0.2.7/443`. */
export type ListenerKey = string;
/**
 * The identity of a route: the listener key, followed by `/` and the UID of the Service if Services share the listener, followed by `/` and
 * the port of the Service if the Service is a backend of HTTP routes.
 */
export type RouteKey = string;

/** Returns the key of the route that a listener entry stands for. */
export function routeKey(listener: ListenerEntry): RouteKey {
  const key = listenerKey(listener);
  if (listener.backendPort !== undefined) return backendRouteKey(key, listener.service, listener.backendPort);
  return listener.shared === true ? `${key}/${listener.service}` : key;
}

/** Returns the key of the route to a backend of HTTP routes: a port of the Service with this UID. */
export function backendRouteKey(listener: ListenerKey, service: string, port: number): RouteKey {
  return `${listener}/${service}/${port}`;
}

/** Returns the key of the listener to which a route belongs. */
export function listenerKeyOfRoute(route: RouteKey): ListenerKey {
  const protocolEnd = route.indexOf('/');
  const portEnd = route.indexOf('/', route.indexOf('/', protocolEnd + 1) + 1);
  return portEnd < 0 ? route : route.slice(0, portEnd);
}

/** Returns the listener key for the id of a listener entry; undefined for the id of any other entry. */
export function listenerKeyOfEntryId(id: string): ListenerKey | undefined {
  if (!id.startsWith('listener/')) return undefined;
  const [, , address, protocol, port] = id.split('/', 5);
  return `${protocol}/${address}/${port}`;
}

/** Returns the key of the listener to which a listener entry belongs. */
export function listenerKey(listener: Pick<ListenerEntry, 'protocol' | 'address' | 'port'>): ListenerKey {
  return `${listener.protocol}/${listener.address}/${listener.port}`;
}

/** The client of a connection. Read `address` and `port` only if needed, because each read may cost a system call. */
export interface Client {
  readonly address: string;
  readonly port: number;
}

export type RouteRefusal = 'no-endpoints' | 'source-range';

/** Returns why a route refuses a client; undefined if the route admits the client. */
export function routeRefusalFor(route: Route, client: Pick<Client, 'address'>): RouteRefusal | undefined {
  if (!route.allowsSource(client)) return 'source-range';
  // A redirect needs no endpoint. An HTTP route may redirect, or send the next request to another backend.
  const needsEndpoint = httpsRedirectPort(route) === undefined && !isBackend(route);
  return route.endpoints.length === 0 && needsEndpoint ? 'no-endpoints' : undefined;
}

// What `compileRoute` needs besides the entries of the listener and the Service.
export interface RouteInput {
  /** The zone of the node; null if the node has none. */
  readonly zone: string | null;
  /** The endpoints entries of the listener's port. */
  readonly chunks: readonly EndpointsEntry[];
  readonly sourceRangeCheck: SourceRangeCheck;
  /** All certificates of the Service, for clients and endpoints. */
  readonly certificates: readonly CertificateEntry[];
  readonly errorPages: ErrorPagesEntry | undefined;
}

/**
 * Compiles the route of a listener. Throws if the Service has no settings, because translation gives listeners only to Services with
 * settings.
 */
export function compileRoute(listener: ListenerEntry, service: ServiceEntry, parts: RouteInput): Route {
  const { zone, chunks, sourceRangeCheck, certificates, errorPages } = parts;
  const { settings } = service;
  if (settings === null) throw new Error(`invalid table: Service ${service.uid} has a listener but no settings`);
  const isTls = terminatingTlsPort({ settings, listener }) !== undefined;
  const endpointCertificate = isTls ? certificates.find(isForEndpoints) : undefined;
  const forClients =
    endpointCertificate === undefined ? certificates : certificates.filter((each) => each !== endpointCertificate);
  return {
    certificates: isTls ? forClients : NO_CERTIFICATES,
    ...(endpointCertificate && { endpointCertificate }),
    errorPages,
    key: routeKey(listener),
    listener,
    service,
    settings,
    endpoints: mergeEndpoints(chunks),
    zone,
    allowsSource: sourceRangeCheck.allowsSource,
  };
}

function isForEndpoints({ forEndpoints }: CertificateEntry): boolean {
  return forEndpoints === true;
}

const NO_CERTIFICATES: readonly CertificateEntry[] = Object.freeze([]);

/**
 * Returns the endpoints of all chunks, sorted and without duplicates. An endpoint can be in two chunks while it moves from one
 * EndpointSlice to another. Keeps the duplicate whose zone names sort first, so that the result does not depend on the order of changes.
 */
function mergeEndpoints(chunks: readonly EndpointsEntry[]): readonly Endpoint[] {
  const [first, ...others] = chunks;
  if (first !== undefined && others.length === 0 && isSorted(first.endpoints)) return first.endpoints;
  const unique = new Map<string, Endpoint>();
  for (const chunk of chunks) {
    for (const endpoint of chunk.endpoints) {
      const key = endpointKey(endpoint);
      const known = unique.get(key);
      if (known === undefined || zonesOf(endpoint).join() < zonesOf(known).join()) unique.set(key, endpoint);
    }
  }
  return [...unique.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}

/** Whether endpoints are sorted and unique, as they are in most entries. A sorted list needs no copy. */
function isSorted(endpoints: readonly Endpoint[]): boolean {
  let before: string | undefined;
  for (const endpoint of endpoints) {
    const key = endpointKey(endpoint);
    if (before !== undefined && before >= key) return false;
    before = key;
  }
  return true;
}

/** The check of a client's address against the source ranges of a Service, shared by all routes of the Service. */
export interface SourceRangeCheck {
  /** CIDRs, from the newest entry of the Service. */
  ranges: readonly string[];
  readonly allowsSource: Route['allowsSource'];
}

/**
 * Returns the check for `ranges` (CIDRs): `former`, the previous check of the Service, if its ranges are equal; otherwise a new check. A
 * check compiles its ranges only when the first client connects, because the main thread of a proxy has routes too, but serves no clients.
 */
export function sourceRangeCheckFor(ranges: readonly string[], former: SourceRangeCheck | undefined): SourceRangeCheck {
  if (ranges.length === 0) return ALLOW_ALL;
  if (former === undefined || !isJsonEqual(ranges, former.ranges)) return compileSourceRanges(ranges);
  // Drops the reference to the old list, so that the old list can be garbage-collected.
  former.ranges = ranges;
  return former;
}

const ALLOW_ALL: SourceRangeCheck = { ranges: Object.freeze([]), allowsSource: () => true };

function compileSourceRanges(ranges: readonly string[]): SourceRangeCheck {
  let networks: NetworkSet | undefined;
  const check: SourceRangeCheck = {
    ranges,
    allowsSource: ({ address }) => {
      networks ??= compileNetworks(check.ranges);
      return networks.contains(address);
    },
  };
  return check;
}
