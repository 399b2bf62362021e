// Rules for ports that the fleet shares (`sharedPorts` in the fleet settings). Many Services use such a port on one address, and the host
// name that a client requests (the server name of TLS, or the Host of HTTP) selects the Service. If a Service owned a port exclusively
// before the fleet shared the port, the Service keeps the port exclusively until the Service names hosts.

import type { FleetSettings } from '../../fleet-settings.ts';
import { isHostAllowed } from '../../match/hosts.ts';
import { PLAIN_HTTP_PORT } from '../../match/route.ts';
import { joinItems, portText } from '../../message-text.ts';
import type { RefusalReason } from '../../reason.ts';
import type { ServiceObject, ServicePort } from '../../snapshot.ts';
import type { ListenerEntry, StatusReason } from '../../table/entry.ts';
import type { Nodes } from '../nodes.ts';
import { policyText, type Tenant } from '../tenancy.ts';
import { portHostKey, portKey, portShareKey } from './allocations.ts';
import {
  CLAIM_CONFLICTS,
  type ClaimConflict,
  canSelectByHost,
  claimAdvice,
  claimConflictBetween,
  type HostClaim,
  hostClaimFor,
  isSameClaim,
  type SharingSettings,
} from './host-claims.ts';
import { ANOTHER_TENANT, type OwnerText, type PortAllocations } from './port-allocations.ts';

/**
 * How a Service uses a port. `exclusive`: the Service gets all clients of the port. `shared`: the Service gets only the clients that
 * request its hosts.
 */
export type PortMode = 'exclusive' | 'shared';
export type PortModes = ReadonlyMap<ServicePort, PortMode>;
/**
 * The maximum number of hosts that a Service may have on shared ports. Each host takes memory in every proxy, and an annotation of 256
 * KiB could name thousands of hosts.
 */
const MAX_SHARED_PORT_HOSTS = 100;

/** Reports whether there are more hosts than a Service may have on shared ports. */
export function hasTooManyHosts(hosts: readonly string[]): boolean {
  return hosts.length > MAX_SHARED_PORT_HOSTS;
}

/** Reports whether the fleet shares this port between Services. */
export function isFleetSharedPort({ port, protocol }: ServicePort, { sharedPorts }: FleetSettings): boolean {
  return protocol === 'TCP' && sharedPorts.includes(port);
}

/**
 * Returns the current mode of each port that a Service owns, by `portKey`. `exclusivePorts` are the keys of ports that the allocation of
 * the Service contains as exclusive, even if no node is available to serve them.
 */
export function currentPortModes(
  listeners: readonly ListenerEntry[],
  exclusivePorts: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, PortMode> {
  const modes = new Map<string, PortMode>([...exclusivePorts].map((port) => [port, 'exclusive']));
  for (const listener of listeners) modes.set(portKey(listener), listener.shared === true ? 'shared' : 'exclusive');
  return modes;
}

export interface PortModeInput {
  readonly fleet: FleetSettings;
  /** The settings that the Service requests or has. */
  readonly settings: SharingSettings;
  readonly listeners: readonly ListenerEntry[];
  /** See `currentPortModes`. */
  readonly exclusivePorts?: ReadonlySet<string> | undefined;
  /** Whether the requested settings are accepted. If they are not, the Service keeps its ports in their present mode. */
  readonly isAccepted: boolean;
}

/** Returns the mode in which a Service wants each of its ports. */
export function portModesFor(
  { ports }: ServiceObject,
  { fleet, settings, listeners, exclusivePorts, isAccepted }: PortModeInput,
): PortModes {
  const currentModes = currentPortModes(listeners, exclusivePorts);
  return new Map(
    ports.map((port) => {
      const current = currentModes.get(portKey(port));
      if (settings.hosts.length === 0 || !canSelectByHost(port, settings)) return [port, 'exclusive'];
      if (current === 'shared' || (current === 'exclusive' && !isAccepted)) return [port, current];
      return [port, isFleetSharedPort(port, fleet) ? 'shared' : 'exclusive'];
    }),
  );
}

/** Returns the keys of the ports and hosts that block a Service while another Service owns them. */
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

/** Returns the refusal of a shared port: the Service names no hosts, or the proxy cannot tell at this port which host a client asks for. */
export function hostsRequiredRefusal(port: ServicePort, { name, grants, policy }: Tenant): StatusReason<RefusalReason> {
  const may =
    grants.allowedHosts.length === 0
      ? `tenant "${name}" has no allowed hosts yet: ask the operator to allow hosts in ${policyText(policy)}`
      : `tenant "${name}" may use only the hosts ${joinItems(grants.allowedHosts)}`;
  const protocol =
    port.port === PLAIN_HTTP_PORT
      ? 'set appProtocol: http for this port'
      : 'for this port weir.dev/tls-passthrough: "true", weir.dev/tls-secret or appProtocol: http';
  const message = `port ${portText(port)} is shared by host name: add annotation weir.dev/hosts with the host names that clients request (${may}), and ${protocol}, or use another port`;
  return { reason: 'PortReserved', message };
}

/** Returns a refusal if there are too many hosts, or if the tenant's policy does not allow one of the hosts; otherwise undefined. */
export function hostNotAllowedRefusal(
  hosts: readonly string[],
  { name, grants, policy }: Tenant,
): StatusReason<RefusalReason> | undefined {
  if (hasTooManyHosts(hosts)) {
    const message = `the Service names ${hosts.length} hosts, and at most ${MAX_SHARED_PORT_HOSTS} are allowed on shared ports; split them over several Services`;
    return { reason: 'HostNotAllowed', message };
  }
  const forbidden = hosts.filter((host) => !isHostAllowed(host, grants.allowedHosts));
  if (forbidden.length === 0) return undefined;
  const may = grants.allowedHosts.length === 0 ? 'no hosts' : `only ${joinItems(grants.allowedHosts)}`;
  const help = grants.allowedHosts.length === 0 ? 'ask' : 'use other hosts in annotation weir.dev/hosts, or ask';
  const message = `${forbidden.length === 1 ? 'host' : 'hosts'} ${joinItems(forbidden)} ${forbidden.length === 1 ? 'is' : 'are'} not allowed: tenant "${name}" may use ${may} on shared ports; ${help} the operator to allow ${forbidden.length === 1 ? 'the host' : 'the hosts'} in ${policyText(policy)}`;
  return { reason: 'HostNotAllowed', message };
}

export interface HostConflictInput {
  readonly service: ServiceObject;
  /** The settings that the Service requests or has. */
  readonly settings: SharingSettings;
  readonly portAllocations: PortAllocations;
  /** Names of the pools in which the hosts must be free. */
  readonly pools: ReadonlySet<string>;
  /** Returns the pool of a node; undefined if the node does not exist any more. */
  readonly poolOf: (node: string) => string | undefined;
  readonly ownerText: OwnerText;
}

/**
 * Returns the refusal of a shared port if another Service owns one of the hosts in the pools, and cannot share this host with the Service;
 * undefined if the Service can have all hosts. A Service keeps the hosts that it owns with an unchanged claim.
 */
export function hostConflictRefusal(
  port: ServicePort,
  { service, settings, portAllocations, pools, poolOf, ownerText }: HostConflictInput,
): StatusReason<RefusalReason> | undefined {
  const isInPools = (nodes: ReadonlySet<string>): boolean => [...nodes].some((node) => pools.has(poolOf(node) ?? ''));
  const claim = hostClaimFor(port, service.namespace, settings);
  const ownClaim = portAllocations.claimsOf(service.uid).get(port.port);
  const isUnchanged = ownClaim !== undefined && isSameClaim(ownClaim, claim);
  const hosts = new Set<string>();
  const conflictsByOwner = new Map<string, ClaimConflict>();
  for (const host of settings.hosts) {
    const owners = portAllocations.hostOwnersOf(portHostKey(port, host));
    const ownNodes = owners.get(service.uid);
    if (isUnchanged && ownNodes !== undefined && isInPools(ownNodes)) continue;
    for (const [uid, nodes] of owners) {
      const conflict = uid === service.uid ? undefined : conflictWith(uid, port, { claim, portAllocations });
      if (conflict === undefined || !isInPools(nodes)) continue;
      hosts.add(host);
      conflictsByOwner.set(uid, conflict);
    }
  }
  if (hosts.size === 0) return undefined;
  const ownerTexts = [...new Set([...conflictsByOwner.keys()].map(ownerText))].sort();
  const conflicts = [...conflictsByOwner.values()];
  const gravest = CLAIM_CONFLICTS.find((conflict) => conflicts.includes(conflict)) as ClaimConflict;
  const advice = ownerTexts.includes(ANOTHER_TENANT)
    ? 'use another host, or another port'
    : claimAdvice(gravest, port, claim);
  const poolNames = joinItems([...pools].sort().map((pool) => `"${pool}"`));
  const message = `host ${joinItems([...hosts])} on port ${portText(port)} of pool ${poolNames} is taken by ${joinItems(ownerTexts)}; ${advice}`;
  return { reason: 'HostConflict', message };
}

/** Returns why the owner of a host on this port cannot share the host with the Service that makes the claim; undefined if it can. */
export function conflictWith(
  owner: string,
  { port }: Pick<ServicePort, 'port'>,
  { claim, portAllocations }: { readonly claim: HostClaim; readonly portAllocations: PortAllocations },
): ClaimConflict | undefined {
  const other = portAllocations.claimsOf(owner).get(port);
  return other && claimConflictBetween(claim, other);
}

export interface HostRefusalContext {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly tenant: Tenant;
  readonly portAllocations: PortAllocations;
  readonly ownerText: OwnerText;
}

export interface HostRequest {
  readonly settings: SharingSettings;
  readonly pool: string;
}

/**
 * Returns why a Service cannot replace its hosts and claims on shared ports by the requested hosts and claims; undefined if it can. A
 * Service replaces all of its hosts and claims or none. Placement looks for conflicts on ports that the Service does not have yet.
 */
export function hostRefusalFor(
  service: ServiceObject,
  { settings, pool }: HostRequest,
  { fleet, nodes, tenant, portAllocations, ownerText }: HostRefusalContext,
): StatusReason<RefusalReason> | undefined {
  const listeners = portAllocations.listenersOf(service.uid);
  const currentModes = currentPortModes(listeners);
  const modes = portModesFor(service, { fleet, settings, listeners, isAccepted: true });
  const withoutHosts = service.ports.find(
    (port) => modes.get(port) === 'exclusive' && currentModes.get(portKey(port)) === 'shared',
  );
  if (withoutHosts !== undefined) return hostsRequiredRefusal(withoutHosts, tenant);
  const shared = service.ports.filter((port) => modes.get(port) === 'shared');
  if (shared.length === 0) return undefined;
  const poolOf = (node: string): string | undefined => nodes.byName.get(node)?.pool;
  const pools = new Set([pool, ...listeners.flatMap(({ node }) => poolOf(node) ?? [])]);
  const input = { service, settings, portAllocations, pools, poolOf, ownerText };
  const alreadyShared = shared.filter((port) => currentModes.has(portKey(port)));
  return (
    hostNotAllowedRefusal(settings.hosts, tenant) ??
    alreadyShared.map((port) => hostConflictRefusal(port, input)).find((refusal) => refusal !== undefined)
  );
}
