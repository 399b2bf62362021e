// Whether a Service may go from the hosts that it has on shared ports to those that it asks for. All of them or none: half of
// what was asked for would lead clients to nobody.
import type { RefusalReason } from '../reason.ts';
import type { TlsTermination } from '../settings/service-settings.ts';
import type { FleetSettings, ServiceObject } from '../snapshot.ts';
import type { StatusReason } from '../table/entry.ts';
import type { Nodes } from './nodes.ts';
import { portKey } from './port-key.ts';
import {
  currentPortModes,
  hostConflictRefusal,
  hostNotAllowedRefusal,
  hostsRequiredRefusal,
  portModesFor,
} from './shared-ports.ts';
import type { PortAllocations } from './taken-ports.ts';
import type { Tenant } from './tenancy.ts';

export interface HostRefusalContext {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly tenant: Tenant;
  readonly portAllocations: PortAllocations;
  readonly ownerText: (uid: string) => string;
}

export interface HostRequest {
  readonly hosts: readonly string[];
  readonly tls: TlsTermination | undefined;
  readonly pool: string;
}

/** Why not; whether hosts are free on ports that it does not have yet, its placement will tell. */
export function hostRefusalFor(
  service: ServiceObject,
  { hosts, tls, pool }: HostRequest,
  { fleet, nodes, tenant, portAllocations, ownerText }: HostRefusalContext,
): StatusReason<RefusalReason> | undefined {
  const listeners = portAllocations.listenersOf(service.uid);
  const has = currentPortModes(listeners);
  const modes = portModesFor(service, { fleet, hosts, tls, listeners, isGranted: true });
  const unnamed = service.ports.find((port) => modes.get(port) === 'alone' && has.get(portKey(port)) === 'shared');
  if (unnamed !== undefined) return hostsRequiredRefusal(unnamed, tenant);
  const shared = service.ports.filter((port) => modes.get(port) === 'shared');
  if (shared.length === 0) return undefined;
  const poolOf = (node: string): string | undefined => nodes.byName.get(node)?.pool;
  const pools = new Set([pool, ...listeners.flatMap(({ node }) => poolOf(node) ?? [])]);
  const question = { service, hosts, portAllocations: portAllocations, pools, poolOf, ownerText: ownerText };
  const held = shared.filter((port) => has.has(portKey(port)));
  return (
    hostNotAllowedRefusal(hosts, tenant) ??
    held.map((port) => hostConflictRefusal(port, question)).find((refusal) => refusal !== undefined)
  );
}
