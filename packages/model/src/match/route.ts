import type { ServiceSettings, TlsPort } from '../settings/service-settings.ts';
import type { CertificateEntry, Endpoint, ListenerEntry, ServiceEntry } from '../table/entry.ts';

/** Everything that a worker needs to serve a connection of a listener. Immutable: a change creates a new route. */
export interface Route {
  readonly key: RouteKey;
  readonly listener: ListenerEntry;
  readonly service: ServiceEntry;
  readonly settings: ServiceSettings;
  readonly endpoints: readonly Endpoint[];
  /**
   * Undefined if TLS is not terminated at the listener, or if the certificate is missing. While the certificate is missing, the route
   * serves no client.
   */
  readonly certificate: CertificateEntry | undefined;
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

/** The identity of a listener on its node, such as `TCP/192.0.2.7/443`. */
export type ListenerKey = string;
/** The identity of a route: the listener key, followed by `/` and the UID of the Service if Services share the listener. */
export type RouteKey = string;

/** Returns the key of the route that a listener entry stands for. */
export function routeKey(listener: ListenerEntry): RouteKey {
  const key = listenerKey(listener);
  return listener.shared === true ? `${key}/${listener.service}` : key;
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
  return route.endpoints.length === 0 ? 'no-endpoints' : undefined;
}
