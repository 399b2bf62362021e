import { DEFAULT_POOL } from '../../policy.ts';
import type { ServiceSettings } from '../../settings/service-settings.ts';
import { type CertificateEntry, certificateId, type ListenerEntry, type PortEntry } from '../../table/entry.ts';
import type { RoutingTable } from '../../table/table.ts';

/** The ports and hosts that the last table allocated. A Service keeps its allocation, whatever other Services request later. */
export interface Allocations {
  /** By entry id. */
  readonly listeners: ReadonlyMap<string, ListenerEntry>;
  /** The allocation that a Service keeps while its present settings are refused, by Service UID. */
  readonly services: ReadonlyMap<string, ServiceAllocation>;
}

export interface ServiceAllocation {
  readonly settings: ServiceSettings;
  readonly tenant: string;
  readonly pool: string;
  /** The ports that were accepted, even if no node was available to serve them. */
  readonly ports: ServedPortNames;
  /** The `portKey` of each port that the Service owns exclusively although the fleet shares the port now. */
  readonly exclusivePorts: ReadonlySet<string>;
  /** Undefined if TLS is not terminated here, or if the table had no certificate entry. */
  readonly certificate: CertificateEntry | undefined;
}

export const NO_ALLOCATIONS: Allocations = { listeners: new Map(), services: new Map() };

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
        certificate: certificateOf(entry.uid, table),
      });
    }
  }
  return { listeners, services };
}

function certificateOf(uid: string, { entries }: RoutingTable): CertificateEntry | undefined {
  const entry = entries.get(certificateId(uid));
  return entry?.kind === 'certificate' ? entry : undefined;
}

/** The name of each served port in the slices of the Service, by `portKey`: the former name until the slices carry the new name. */
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

/** Identifies a port of a Service and its listeners; TCP and UDP of one number have two keys. */
export function portKey({ port, protocol }: NumberedPort): string {
  return `${protocol}/${port}`;
}

/** Identifies a host on a shared port: in one pool it has one owner. */
export function portHostKey(port: NumberedPort, host: string): string {
  return `${portKey(port)}/${host}`;
}

/**
 * Identifies a shared port without regard to hosts: every sharer blocks a Service that wants the port exclusively. It is the key of
 * the empty host.
 */
export function portShareKey(port: NumberedPort): string {
  return portHostKey(port, '');
}

/**
 * Returns the keys of the resources that listeners occupy: `portKey` for an exclusive port, `portShareKey` and the `portHostKey` of
 * each host for a shared port.
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
