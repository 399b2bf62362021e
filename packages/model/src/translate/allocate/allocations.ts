import { DEFAULT_POOL } from '../../policy.ts';
import { keySecretsOf, type ServiceSettings } from '../../settings/service-settings.ts';
import {
  type CertificateEntry,
  certificateId,
  type EndpointsEntry,
  type ErrorPagesEntry,
  errorPagesId,
  type ListenerEntry,
  type PortEntry,
} from '../../table/entry.ts';
import { entriesOf, type RoutingTable } from '../../table/table.ts';

/** What the last published routing table allocated to Services. A Service keeps its allocation, whatever other Services request later. */
export interface Allocations {
  /** The listener entries of the table, by entry id. */
  readonly listeners: ReadonlyMap<string, ListenerEntry>;
  /** What each served Service keeps while its new settings are refused, by Service UID. */
  readonly services: ReadonlyMap<string, ServiceAllocation>;
  /** The endpoints entries of the table, by Service UID. */
  readonly endpoints: ReadonlyMap<string, readonly EndpointsEntry[]>;
}

export interface ServiceAllocation {
  readonly settings: ServiceSettings;
  readonly tenant: string;
  readonly pool: string;
  /** The accepted ports, even if no node was available to serve them. */
  readonly ports: ServedPortNames;
  /** The `portKey` of each port that the Service owns exclusively although the fleet shares the port now. */
  readonly exclusivePorts: ReadonlySet<string>;
  /**
   * The last accepted certificates in the order of the Secrets. Empty if the proxies do not terminate TLS for the Service; incomplete if
   * entries of the table were not readable.
   */
  readonly certificates: readonly CertificateEntry[];
  /** The last accepted error pages; null for Weir's own pages. */
  readonly errorPages: ErrorPagesEntry | null;
}

export const NO_ALLOCATIONS: Allocations = { listeners: new Map(), services: new Map(), endpoints: new Map() };

/** Returns the allocations of a published table. */
export function allocationsFor(table: RoutingTable): Allocations {
  const listeners = new Map<string, ListenerEntry>();
  const services = new Map<string, ServiceAllocation>();
  for (const entry of table.entries.values()) {
    if (entry.kind === 'listener') listeners.set(entry.id, entry);
    else if (entry.kind === 'service' && entry.settings !== null && entry.tenant !== null) {
      const { settings, tenant, pool, ports } = entry;
      services.set(entry.uid, {
        settings,
        tenant,
        pool: pool ?? DEFAULT_POOL,
        ports: servedPortNames(ports),
        exclusivePorts: exclusivePortsOf(ports),
        certificates: certificatesOf(entry.uid, settings, table),
        errorPages: errorPagesOf(entry.uid, table),
      });
    }
  }
  return { listeners, services, endpoints: Map.groupBy(entriesOf(table, 'endpoints'), ({ service }) => service) };
}

function certificatesOf(uid: string, { tls }: ServiceSettings, { entries }: RoutingTable): readonly CertificateEntry[] {
  const secrets = tls === undefined ? [] : keySecretsOf(tls);
  return secrets.flatMap(({ position }) => {
    const entry = entries.get(certificateId(uid, position));
    return entry?.kind === 'certificate' ? [entry] : [];
  });
}

function errorPagesOf(uid: string, { entries }: RoutingTable): ErrorPagesEntry | null {
  const entry = entries.get(errorPagesId(uid));
  return entry?.kind === 'error-pages' ? entry : null;
}

/**
 * The name that the EndpointSlices use for each served port, by `portKey`. After a rename, a port has its former name here until the
 * slices have the new name.
 */
export type ServedPortNames = ReadonlyMap<string, string | null>;

export function servedPortNames(ports: readonly PortEntry[]): ServedPortNames {
  const served = ports.filter(({ error }) => error === null);
  return new Map(served.map((port) => [portKey(port), port.formerName === undefined ? port.name : port.formerName]));
}

export function exclusivePortsOf(ports: readonly PortEntry[]): ReadonlySet<string> {
  return new Set(ports.filter(({ alone }) => alone === true).map(portKey));
}

interface NumberedPort {
  readonly port: number;
  readonly protocol: string;
}

/** Returns a key for a port number and protocol. A TCP port and a UDP port with the same number have different keys. */
export function portKey({ port, protocol }: NumberedPort): string {
  return `${protocol}/${port}`;
}

/**
 * Returns a key for a host on a shared port. In each node pool, the host on this port belongs to one Service, or to several Services of one
 * namespace with different path prefixes.
 */
export function portHostKey(port: NumberedPort, host: string): string {
  return `${portKey(port)}/${host}`;
}

/**
 * Returns a key for a shared port as a whole: the `portHostKey` of the empty host. A Service that wants the port exclusively waits for
 * this key, because every Service that shares the port blocks the exclusive use.
 */
export function portShareKey(port: NumberedPort): string {
  return portHostKey(port, '');
}

/** Returns the `portKey` of a `portKey`, `portShareKey` or `portHostKey`. */
export function portKeyOfResource(key: string): string {
  return key.split('/', 2).join('/');
}

/**
 * Returns the keys of the ports and hosts that listeners occupy. An exclusive port has its `portKey`. A shared port has its
 * `portShareKey`, and a `portHostKey` for each host.
 */
export function resourceKeysOf(listeners: readonly ListenerEntry[], hosts: readonly string[]): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const listener of listeners) {
    if (listener.shared !== true) keys.add(portKey(listener));
    else if (!keys.has(portShareKey(listener)))
      for (const host of ['', ...hosts]) keys.add(portHostKey(listener, host));
  }
  return keys;
}
