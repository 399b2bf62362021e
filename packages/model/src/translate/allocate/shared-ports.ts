import type { FleetSettings } from '../../fleet-settings.ts';
import { isHostAllowed } from '../../match/hosts.ts';
import { PLAIN_HTTP_PORT } from '../../match/route.ts';
import { joinItems, portText } from '../../message-text.ts';
import type { RefusalReason } from '../../reason.ts';
import type { TlsTermination } from '../../settings/service-settings.ts';
import type { ServiceObject, ServicePort } from '../../snapshot.ts';
import type { ListenerEntry, StatusReason } from '../../table/entry.ts';
import type { Nodes } from '../nodes.ts';
import { policyText, type Tenant } from '../tenancy.ts';
import type { PortAllocations } from './port-allocations.ts';
import { portHostKey, portKey, portShareKey } from './port-key.ts';

// Ports that the fleet shares: one Service has one of them for the clients that ask for its hosts, and many have it together.
// Who had it alone before it was shared keeps it so until it names hosts of its own.

/** Alone: one Service has all clients of the port. Shared: those that ask for its hosts. */
export type PortMode = 'alone' | 'shared';
export type PortModes = ReadonlyMap<ServicePort, PortMode>;
/** Each costs memory on every proxy, and a tenant can write a quarter of a megabyte of them. */
const MAX_SHARED_PORT_HOSTS = 100;

/** Of more it gets none, whatever others give up. */
export function hasTooManyHosts(hosts: readonly string[]): boolean {
  return hosts.length > MAX_SHARED_PORT_HOSTS;
}

/** Whether a port belongs to the fleet, and Services have only shares of it. */
export function isFleetSharedPort({ port, protocol }: ServicePort, { sharedPorts }: FleetSettings): boolean {
  return protocol === 'TCP' && sharedPorts.includes(port);
}

/**
 * How a Service has its ports now; those that it does not have are not in it. `alone`: keys of those that it has so also while no
 * node is there to serve them.
 */
export function currentPortModes(
  listeners: readonly ListenerEntry[],
  alone: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, PortMode> {
  const modes = new Map<string, PortMode>([...alone].map((port) => [port, 'alone']));
  for (const listener of listeners) modes.set(portKey(listener), listener.shared === true ? 'shared' : 'alone');
  return modes;
}

export interface PortModeInput {
  readonly fleet: FleetSettings;
  /** That it asks for, or has. */
  readonly hosts: readonly string[];
  readonly listeners: readonly ListenerEntry[];
  /** Where TLS ends; undefined: nowhere, it is passed on. */
  readonly tls: TlsTermination | undefined;
  /** As of `modesOf`. */
  readonly exclusivePorts?: ReadonlySet<string> | undefined;
  /** Granted what it asks for; else it goes on with what it had, as it had it. */
  readonly isGranted: boolean;
}

/** How a Service would have each of its ports. */
export function portModesFor(
  { ports }: ServiceObject,
  { fleet, hosts, tls, listeners, exclusivePorts, isGranted }: PortModeInput,
): PortModes {
  const has = currentPortModes(listeners, exclusivePorts);
  return new Map(
    ports.map((port) => {
      const now = has.get(portKey(port));
      if (hosts.length === 0 || !canSelectByServerName(port, tls)) return [port, 'alone'];
      if (now === 'shared' || (now === 'alone' && !isGranted)) return [port, now];
      return [port, isFleetSharedPort(port, fleet) ? 'shared' : 'alone'];
    }),
  );
}

/** Without TLS there is no server name to go by. */
function canSelectByServerName({ port }: ServicePort, tls: TlsTermination | undefined): boolean {
  return tls === undefined ? port !== PLAIN_HTTP_PORT : tls.ports.some((each) => each.port === port);
}

/** What somebody else may give up, and this Service could use. */
export function wantedResourceKeys(
  ports: readonly ServicePort[],
  modes: PortModes,
  hosts: readonly string[],
): readonly string[] {
  return ports.flatMap((port) =>
    modes.get(port) === 'shared'
      ? [portKey(port), ...hosts.map((host) => portHostKey(port, host))]
      : [portKey(port), portShareKey(port)],
  );
}

/** Why a port of the fleet is not to be had without hosts. */
export function hostsRequiredRefusal(port: ServicePort, { name, grants, policy }: Tenant): StatusReason<RefusalReason> {
  const other = 'use another port';
  if (port.port === PLAIN_HTTP_PORT) {
    const message = `port ${portText(port)} is shared by host names, and this version knows those of TLS only; ${other}`;
    return { reason: 'PortReserved', message };
  }
  const may =
    grants.allowedHosts.length === 0
      ? `of which tenant "${name}" has none yet: ask for some in ${policyText(policy)}`
      : `of which tenant "${name}" may have ${joinItems(grants.allowedHosts)}`;
  const message = `port ${portText(port)} is shared by host names: add annotation weir.dev/hosts with the names that clients ask for (${may}), and weir.dev/tls-passthrough: "true" or weir.dev/tls-secret for this port, or ${other}`;
  return { reason: 'PortReserved', message };
}

/** Why the tenant may not have one of the hosts; undefined: it may have all. */
export function hostNotAllowedRefusal(
  hosts: readonly string[],
  { name, grants, policy }: Tenant,
): StatusReason<RefusalReason> | undefined {
  if (hasTooManyHosts(hosts)) {
    const message = `the Service names ${hosts.length} hosts, and has at most ${MAX_SHARED_PORT_HOSTS} on ports that are shared; make several Services of them`;
    return { reason: 'HostNotAllowed', message };
  }
  const bad = hosts.filter((host) => !isHostAllowed(host, grants.allowedHosts));
  if (bad.length === 0) return undefined;
  const may = grants.allowedHosts.length === 0 ? 'no hosts at all' : `only ${joinItems(grants.allowedHosts)}`;
  const help = grants.allowedHosts.length === 0 ? 'ask' : 'use others in annotation weir.dev/hosts, or ask';
  const message = `host ${joinItems(bad)} is not allowed: tenant "${name}" may have ${may} on ports that are shared; ${help} for it in ${policyText(policy)}`;
  return { reason: 'HostNotAllowed', message };
}

export interface HostConflictInput {
  readonly service: ServiceObject;
  readonly hosts: readonly string[];
  readonly portAllocations: PortAllocations;
  /** Names of the pools in which they must be free. */
  readonly pools: ReadonlySet<string>;
  /** Undefined: there is no such node any more. */
  readonly poolOf: (node: string) => string | undefined;
  /** How a message calls the holder; only what this tenant may know. */
  readonly ownerText: (uid: string) => string;
}

/** Why a shared port is not to be had with these hosts; what the Service has in these pools already stays its own. */
export function hostConflictRefusal(
  port: ServicePort,
  question: HostConflictInput,
): StatusReason<RefusalReason> | undefined {
  const { service, hosts, portAllocations, pools, poolOf, ownerText } = question;
  const isHere = (nodes: ReadonlySet<string>): boolean => [...nodes].some((node) => pools.has(poolOf(node) ?? ''));
  const lost = new Map<string, string>();
  for (const host of hosts) {
    const claimants = portAllocations.hostOwnersOf(portHostKey(port, host));
    const own = claimants.get(service.uid);
    if (own !== undefined && isHere(own)) continue;
    for (const [uid, nodes] of claimants) if (uid !== service.uid && isHere(nodes)) lost.set(host, uid);
  }
  if (lost.size === 0) return undefined;
  const holders = [...new Set([...lost.values()].map(ownerText))].sort();
  const where = joinItems([...pools].sort().map((pool) => `"${pool}"`));
  const message = `host ${joinItems([...lost.keys()])} on port ${portText(port)} of pool ${where} is taken by ${joinItems(holders)}; use another host, or another port`;
  return { reason: 'HostConflict', message };
}

// Whether a Service may go from the hosts that it has on shared ports to those that it asks for. All of them or none: half of
// what was asked for would lead clients to nobody.
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
