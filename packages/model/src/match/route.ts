import type { ServiceSettings, TlsPort } from '../settings/service-settings.ts';
import type { CertificateEntry, Endpoint, ListenerEntry, ServiceEntry } from '../table/entry.ts';

/** All that a worker needs to serve a connection of a listener. Immutable: a change replaces the route. */
export interface Route {
  readonly key: RouteKey;
  readonly listener: ListenerEntry;
  readonly service: ServiceEntry;
  readonly settings: ServiceSettings;
  readonly endpoints: readonly Endpoint[];
  /** Undefined if TLS is not terminated here, or if the certificate is missing, in which case the route serves no client. */
  readonly certificate: CertificateEntry | undefined;
  /** The zone of the listener's node; null if the node has none. */
  readonly zone: string | null;
  /** Whether `loadBalancerSourceRanges` admit the address of a client. */
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

/** `TCP/192.0.2.7/443`: a proxy binds each listener once. */
export type ListenerKey = string;
/** The listener key, with `/UID` of the Service appended if Services share the listener. */
export type RouteKey = string;

/** The key of the route of a listener entry. */
export function routeKey(listener: ListenerEntry): RouteKey {
  const key = listenerKey(listener);
  return listener.shared === true ? `${key}/${listener.service}` : key;
}

/** The key of the listener to which a route belongs. */
export function listenerKeyOfRoute(route: RouteKey): ListenerKey {
  const protocolEnd = route.indexOf('/');
  const portEnd = route.indexOf('/', route.indexOf('/', protocolEnd + 1) + 1);
  return portEnd < 0 ? route : route.slice(0, portEnd);
}

/** Returns the key of the listener whose entry has this id; undefined for the id of another kind of entry. */
export function listenerKeyOfEntryId(id: string): ListenerKey | undefined {
  if (!id.startsWith('listener/')) return undefined;
  const [, , address, protocol, port] = id.split('/', 5);
  return `${protocol}/${address}/${port}`;
}

/** The key of the listener at which an entry is served. */
export function listenerKey(listener: Pick<ListenerEntry, 'protocol' | 'address' | 'port'>): ListenerKey {
  return `${listener.protocol}/${listener.address}/${listener.port}`;
}

/** The client of a connection. Reading either property may cost a system call, so read them only if needed. */
export interface Client {
  readonly address: string;
  readonly port: number;
}

export type RouteRefusal = 'no-endpoints' | 'source-range';

/** Returns why a route refuses a client; undefined if it admits the client. */
export function routeRefusalFor(route: Route, client: Pick<Client, 'address'>): RouteRefusal | undefined {
  if (!route.allowsSource(client)) return 'source-range';
  return route.endpoints.length === 0 ? 'no-endpoints' : undefined;
}
