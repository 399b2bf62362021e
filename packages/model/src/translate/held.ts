import type { ServiceSettings } from '../settings/service-settings.ts';
import type { RoutingTable } from '../table/table.ts';

/** What the last table granted, and no later wish of somebody else takes away. */
export interface Held {
  /** By listener id: the UID of the Service that holds it. */
  readonly ports: ReadonlyMap<string, string>;
  /** By Service UID: what serves on while its present wish is refused. */
  readonly services: ReadonlyMap<string, HeldService>;
}

export interface HeldService {
  readonly settings: ServiceSettings;
  readonly tenant: string;
}

export const NOTHING_HELD: Held = { ports: new Map(), services: new Map() };

/** What a published table holds. */
export function heldFor(table: RoutingTable): Held {
  const ports = new Map<string, string>();
  const services = new Map<string, HeldService>();
  for (const entry of table.entries.values()) {
    if (entry.kind === 'listener') ports.set(entry.id, entry.service);
    else if (entry.kind === 'service' && entry.settings !== null && entry.tenant !== null) {
      services.set(entry.uid, { settings: entry.settings, tenant: entry.tenant });
    }
  }
  return { ports, services };
}
