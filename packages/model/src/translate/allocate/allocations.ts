import { DEFAULT_POOL } from '../../policy.ts';
import type { ServiceSettings } from '../../settings/service-settings.ts';
import { type CertificateEntry, certificateId, type ListenerEntry, type PortEntry } from '../../table/entry.ts';
import type { RoutingTable } from '../../table/table.ts';
import { portKey } from './port-key.ts';

/** What the last table granted, and no later wish of somebody else takes away. */
export interface Allocations {
  /** By id. */
  readonly listeners: ReadonlyMap<string, ListenerEntry>;
  /** By Service UID: what serves on while its present wish is refused. */
  readonly services: ReadonlyMap<string, ServiceAllocation>;
}

export interface ServiceAllocation {
  readonly settings: ServiceSettings;
  readonly tenant: string;
  readonly pool: string;
  /** The ports that were served, also while no node was there to serve them. */
  readonly ports: ServedPortNames;
  /** Keys of those of which it has all clients although the fleet shares them by now. */
  readonly exclusivePorts: ReadonlySet<string>;
  /** Where TLS ends here; undefined: nowhere, or it was lost. */
  readonly certificate: CertificateEntry | undefined;
}

export const NO_ALLOCATIONS: Allocations = { listeners: new Map(), services: new Map() };

/** What a published table holds. */
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

/** By key (`portKey`), the name under which slices had the port last; of what was just decided (`grantedTo`), the name that it has now. */
export type ServedPortNames = ReadonlyMap<string, string | null>;

export function servedPortNames(ports: readonly PortEntry[]): ServedPortNames {
  const served = ports.filter(({ error }) => error === null);
  return new Map(served.map((port) => [portKey(port), port.formerName === undefined ? port.name : port.formerName]));
}

export function exclusivePortsOf(ports: readonly PortEntry[]): ReadonlySet<string> {
  return new Set(ports.filter(({ alone }) => alone === true).map(portKey));
}
