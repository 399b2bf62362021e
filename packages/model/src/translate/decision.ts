// What is decided about one Service: whether it is accepted, what of it is served, and where.

import { OPEN_GRANTS } from '../policy.ts';
import { isInRanges, rangesText } from '../port-range.ts';
import type { DegradedReason, RefusalReason } from '../reason.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import { settingsFor } from '../settings/settings-for.ts';
import type { FleetSettings, ServiceObject, ServicePort } from '../snapshot.ts';
import type { ListenerEntry, PortEntry, ServiceEntry, Verdict } from '../table/entry.ts';
import type { HeldService } from './held.ts';
import type { Nodes } from './nodes.ts';
import { holdsPort, type Placement } from './placement.ts';
import { type NodeWish, nodeWishFor, placeInPool } from './pool.ts';
import type { Quota } from './quota.ts';
import type { TakenPorts } from './taken-ports.ts';
import { type Membership, policyText, type Tenant } from './tenancy.ts';
import { counted, listed, portText } from './text.ts';

export interface Decision {
  readonly service: ServiceObject;
  readonly tenant: string | null;
  readonly accepted: ServiceEntry['accepted'];
  readonly degraded: readonly Verdict<DegradedReason>[];
  readonly settings: ServiceSettings | null;
  readonly ports: readonly PortEntry[];
  readonly pool: string | null;
  readonly nodes: readonly string[];
  readonly listeners: readonly ListenerEntry[];
}

export interface DecisionContext {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly membership: Membership;
  readonly held: HeldService | undefined;
  readonly quota: Quota;
  readonly taken: TakenPorts;
  readonly holderText: (uid: string) => string;
}

type Refusal = Verdict<RefusalReason>;
type PortRefusals = ReadonlyMap<ServicePort, Refusal>;

/** Decides one Service; counts what it gets in `quota` and `taken`. */
export function decide(service: ServiceObject, context: DecisionContext): Decision {
  const decision = decideOnce(service, context);
  // What is refused whole holds nothing any more, and is told what it will be told from now on.
  const isLost = decision.settings === null && context.held !== undefined;
  return isLost ? decideOnce(service, { ...context, held: undefined }) : decision;
}

function decideOnce(service: ServiceObject, context: DecisionContext): Decision {
  const { held, membership } = context;
  const parsed = settingsFor(service);
  const tenant = membership.kind === 'tenant' ? membership.tenant : heldTenant(held);
  const asked = parsed.kind === 'settings' && membership.kind === 'tenant' ? parsed.settings : undefined;
  const objection = objectionTo(membership, parsed) ?? (tenant && poolRefusal(asked, tenant));
  const settings = (objection === undefined ? asked : held?.settings) ?? null;
  const badPorts = tenant === undefined ? undefined : portRefusals(service, { tenant, ...context });
  if (tenant === undefined || badPorts === undefined || settings === null) {
    if (objection === undefined) throw new Error('without objection a Service has tenant and settings');
    return refused(service, tenant?.name ?? null, objection, badPorts);
  }
  const ports = service.ports.filter((port) => !badPorts.has(port));
  const refusal = wholeRefusal(ports, badPorts, { tenant, ...context });
  if (refusal !== undefined) return refused(service, tenant.name, objection ?? refusal, badPorts);
  const wish = nodeWishFor(settings, tenant, context.fleet);
  const result = placeInPool(wish, { ...context, service, ports, tenant: tenant.name });
  if (result.kind === 'conflict') {
    return refused(service, tenant.name, objection ?? { reason: 'PortConflict', message: result.message }, badPorts);
  }
  const placement: Placement =
    result.kind === 'placed' ? result.placement : { listeners: [], nodes: [], conflicts: new Map() };
  const moved = result.kind === 'placed' ? result.stays : undefined;
  const stays: Refusal | undefined = moved === undefined ? undefined : { reason: 'PortConflict', message: moved };
  return served(service, { tenant, settings, objection: objection ?? stays, placement, badPorts, wish }, context);
}

function objectionTo(membership: Membership, parsed: ReturnType<typeof settingsFor>): Refusal | undefined {
  if (membership.kind === 'disputed') return { reason: 'TenantConflict', message: membership.message };
  if (parsed.kind === 'invalid') return { reason: 'InvalidAnnotation', message: parsed.mistakes.join('; ') };
  return undefined;
}

function poolRefusal(settings: ServiceSettings | undefined, { name, policy, grants }: Tenant): Refusal | undefined {
  const pool = settings?.pool ?? null;
  if (pool === null || grants.pools.includes(pool)) return undefined;
  const message = `tenant "${name}" may not use pool "${pool}", only ${listed(grants.pools)}; use one of them in annotation weir.dev/pool, or ask for it in ${policyText(policy)}`;
  return { reason: 'PoolNotAllowed', message };
}

/** A Service in dispute goes on where it is, under the tenant that it had, of whom nothing more is known here. */
function heldTenant(held: HeldService | undefined): Tenant | undefined {
  if (held === undefined) return undefined;
  const grants = { ...OPEN_GRANTS, pools: [held.pool] };
  return { name: held.tenant, policy: null, namespaces: [], limits: {}, grants };
}

type PortContext = DecisionContext & { readonly tenant: Tenant };

function portRefusals(service: ServiceObject, context: PortContext): PortRefusals {
  const { fleet, membership, held, quota, tenant, taken } = context;
  const refusals = new Map<ServicePort, Refusal>();
  let left = quota.portsLeft(tenant);
  const listeners = taken.listenersOf(service.uid);
  const isHeld = (port: ServicePort): boolean => holdsPort(port, listeners);
  // Ports that serve come first, so that a new one never takes the place of an old one under a limit.
  const inOrder = held ? [...service.ports].sort((a, b) => Number(isHeld(b)) - Number(isHeld(a))) : service.ports;
  for (const port of inOrder) {
    const refusal = portRefusal(port, fleet);
    if (refusal !== undefined) refusals.set(port, refusal);
    else if (!isAllowed(port, tenant) && !isHeld(port)) refusals.set(port, notAllowed(port, tenant));
    // Its limits are not known: what serves goes on, and nothing is added to it.
    else if (membership.kind === 'disputed' && !isHeld(port)) {
      refusals.set(port, { reason: 'TenantConflict', message: `port ${portText(port)}: ${membership.message}` });
    } else if (held && !isHeld(port) && left < 1) {
      refusals.set(port, {
        reason: 'QuotaExceeded',
        message: `port ${portText(port)}: ${quota.portRefusalFor(tenant)}`,
      });
    } else if (!isHeld(port)) left -= 1;
  }
  return refusals;
}

function portRefusal(port: ServicePort, fleet: FleetSettings): Refusal | undefined {
  if (port.protocol !== 'TCP' && port.protocol !== 'UDP') {
    return {
      reason: 'UnsupportedProtocol',
      message: `port ${portText(port)}: ${port.protocol} is not served, only TCP and UDP are`,
    };
  }
  if (fleet.reservedPorts.some(({ from, to }) => from <= port.port && port.port <= to)) {
    return {
      reason: 'PortReserved',
      message: `port ${portText(port)} is reserved on the nodes for SSH, Kubernetes or Weir itself; use another port`,
    };
  }
  return undefined;
}

function isAllowed({ port }: ServicePort, { grants }: Tenant): boolean {
  return grants.allowedPorts === null || isInRanges(port, grants.allowedPorts);
}

function notAllowed(port: ServicePort, { name, policy, grants }: Tenant): Refusal {
  const ranges = rangesText(grants.allowedPorts ?? []);
  const may = ranges.length === 0 ? 'may have no ports at all' : `may have only ${listed(ranges)}`;
  const help = ranges.length === 0 ? 'ask' : 'use one of them, or ask';
  const message = `port ${portText(port)} is not allowed: tenant "${name}" ${may}; ${help} for it in ${policyText(policy)}`;
  return { reason: 'PortNotAllowed', message };
}

/** Why nothing of the Service can be served. What serves is never measured against the limits again. */
function wholeRefusal(
  ports: readonly ServicePort[],
  badPorts: PortRefusals,
  { held, tenant, quota }: PortContext,
): Refusal | undefined {
  const bad = [...badPorts.values()];
  const never = bad.find(({ reason }) => reason === 'PortReserved' || reason === 'PortNotAllowed');
  if (!held && never !== undefined) return never;
  if (ports.length === 0) return bad[0] ?? { reason: 'UnsupportedProtocol', message: 'the Service has no ports' };
  const message = held ? undefined : quota.refusalFor(tenant, ports.length);
  return message === undefined ? undefined : { reason: 'QuotaExceeded', message };
}

function refused(
  service: ServiceObject,
  tenant: string | null,
  verdict: Refusal,
  badPorts: PortRefusals = new Map(),
): Decision {
  const ports = portEntries(service, badPorts);
  return {
    service,
    tenant,
    accepted: verdict,
    degraded: [],
    settings: null,
    ports,
    pool: null,
    nodes: [],
    listeners: [],
  };
}

interface Served {
  readonly tenant: Tenant;
  readonly settings: ServiceSettings;
  readonly objection: Refusal | undefined;
  readonly placement: Placement;
  readonly badPorts: PortRefusals;
  readonly wish: NodeWish;
}

function served(service: ServiceObject, given: Served, { quota }: DecisionContext): Decision {
  const { tenant, settings, placement } = given;
  const badPorts = new Map(given.badPorts);
  for (const [port, message] of placement.conflicts) badPorts.set(port, { reason: 'PortConflict', message });
  quota.use(tenant.name, service, service.ports.length - badPorts.size);
  const bad = [...badPorts.values()];
  const first = bad[0];
  const accepted: ServiceEntry['accepted'] = given.objection ??
    (first && {
      reason: first.reason,
      message: `${bad.map(({ message }) => message).join('; ')}; the other ports are served`,
    }) ?? {
      reason: 'Accepted',
      message: `accepted for tenant "${tenant.name}"`,
    };
  return {
    service,
    tenant: tenant.name,
    accepted,
    degraded: degradedFor(service, given),
    settings,
    ports: portEntries(service, badPorts),
    pool: given.wish.pool,
    nodes: placement.nodes,
    listeners: placement.listeners,
  };
}

function portEntries(service: ServiceObject, badPorts: PortRefusals): PortEntry[] {
  return service.ports.map((port) => ({
    name: port.name,
    port: port.port,
    protocol: port.protocol,
    error: badPorts.get(port) ?? null,
  }));
}

function degradedFor(service: ServiceObject, { tenant, placement, badPorts, wish }: Served): Verdict<DegradedReason>[] {
  const degraded: Verdict<DegradedReason>[] = [];
  if (service.ports.some((port) => port.nodePort !== null && port.nodePort > 0)) {
    degraded.push({
      reason: 'NodePortBypass',
      message:
        'node ports are open on every node and bypass limits, accounting and cut-off; set spec.allocateLoadBalancerNodePorts to false and clear the nodePort fields',
    });
  }
  if (service.externalTrafficPolicy === 'Local') {
    degraded.push({
      reason: 'SourceAddressNotPreserved',
      message: 'externalTrafficPolicy is Local, but pods see the address of the proxy, not of the client',
    });
  }
  if (placement.nodes.length > 0 && placement.nodes.length < wish.nodes) {
    degraded.push({
      reason: 'FewerNodes',
      message: `served on ${placement.nodes.length} of the ${counted(wish.nodes, 'node')} that are wanted: no other node of ${wish.where} has its ports free and an address of its IP families`,
    });
  }
  const tolerated = service.ports.filter((port) => !badPorts.has(port) && !isAllowed(port, tenant));
  if (tolerated.length > 0) {
    const ports = listed(tolerated.map(portText));
    degraded.push({
      reason: 'OverLimit',
      message: `port ${ports} is no longer allowed for tenant "${tenant.name}"; what serves goes on, and once given up it cannot be had again`,
    });
  }
  return degraded;
}
