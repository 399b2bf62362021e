import type { ServiceSettings, TlsPort } from '../settings/service-settings.ts';
import type { CertificateEntry, Endpoint, ListenerEntry, ServiceEntry } from '../table/entry.ts';

/** What a connection that arrives at a listener needs. Immutable: replaced whole when anything of it changes. */
export interface Route {
  readonly key: RouteKey;
  readonly listener: ListenerEntry;
  readonly service: ServiceEntry;
  readonly settings: ServiceSettings;
  readonly endpoints: readonly Endpoint[];
  /** Where TLS ends here (`endsTls`); undefined there: the certificate has not come, and nobody can be served. */
  readonly certificate: CertificateEntry | undefined;
  /** Of the node that the listener is on; null where nodes have none. */
  readonly zone: string | null;
  /** Whether `loadBalancerSourceRanges` let this client address in. */
  readonly allowsSource: (client: Pick<Client, 'address'>) => boolean;
}

/** Of plain HTTP, where nobody speaks TLS. */
export const PLAIN_HTTP_PORT = 80;

/** Whether its clients are led by their ClientHello. Port 80 beside 443 is never TLS. */
export function expectsClientHello(route: Pick<Route, 'settings' | 'listener'>): boolean {
  const { settings, listener } = route;
  // Of every connection it is asked, and few have anything to do with TLS.
  if (settings.tls !== undefined) return terminatingTlsPort(route) !== undefined;
  return settings.tlsPassthrough && listener.port !== PLAIN_HTTP_PORT;
}

/** How TLS ends at this listener; undefined: it does not, and bytes go on as they come. */
export function terminatingTlsPort({ settings, listener }: Pick<Route, 'settings' | 'listener'>): TlsPort | undefined {
  return listener.protocol === 'TCP' ? settings.tls?.ports.find(({ port }) => port === listener.port) : undefined;
}

/** `TCP/192.0.2.7/443`: what a proxy can bind once. */
export type ListenerKey = string;
/** What tells routes apart: the key of the listener, and behind it, where Services share that, the UID of the Service. */
export type RouteKey = string;

export function routeKey(listener: ListenerEntry): RouteKey {
  const key = listenerKey(listener);
  return listener.shared === true ? `${key}/${listener.service}` : key;
}

/** The key of the listener that a route is of. */
export function listenerKeyOfRoute(route: RouteKey): ListenerKey {
  const protocolEnd = route.indexOf('/');
  const portEnd = route.indexOf('/', route.indexOf('/', protocolEnd + 1) + 1);
  return portEnd < 0 ? route : route.slice(0, portEnd);
}

/** The key of the listener that the entry of this id is of, if it is of one. */
export function listenerKeyOfEntryId(id: string): ListenerKey | undefined {
  if (!id.startsWith('listener/')) return undefined;
  const [, , address, protocol, port] = id.split('/', 5);
  return `${protocol}/${address}/${port}`;
}

export function listenerKey(listener: Pick<ListenerEntry, 'protocol' | 'address' | 'port'>): ListenerKey {
  return `${listener.protocol}/${listener.address}/${listener.port}`;
}

/** Who connects. Both may cost a system call, so they are read only by what needs them. */
export interface Client {
  readonly address: string;
  readonly port: number;
}

export type RouteRefusal = 'no-endpoints' | 'source-range';

/** Why a route takes nothing from this client; undefined: it does. Law: agrees with a linear search through the table. */
export function routeRefusalFor(route: Route, client: Pick<Client, 'address'>): RouteRefusal | undefined {
  if (!route.allowsSource(client)) return 'source-range';
  return route.endpoints.length === 0 ? 'no-endpoints' : undefined;
}
