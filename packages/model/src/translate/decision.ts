// What is decided about one Service: whether it is accepted, what of it is served, and where.
import type { DegradedReason, RefusalReason } from '../reason.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import { settingsFor } from '../settings/settings-for.ts';
import type { FleetSettings, ServiceObject, ServicePort } from '../snapshot.ts';
import type { ListenerEntry, NodeEntry, PortEntry, ServiceEntry, Verdict } from '../table/entry.ts';
import type { HeldService } from './held.ts';
import { holdsPort, type Placement, place } from './placement.ts';
import type { Quota } from './quota.ts';
import type { Membership, Tenant } from './tenancy.ts';
import { portText } from './text.ts';

export interface Decision {
  readonly service: ServiceObject;
  readonly tenant: string | null;
  readonly accepted: ServiceEntry['accepted'];
  readonly degraded: readonly Verdict<DegradedReason>[];
  readonly settings: ServiceSettings | null;
  readonly ports: readonly PortEntry[];
  readonly nodes: readonly string[];
  readonly listeners: readonly ListenerEntry[];
}

export interface DecisionContext {
  readonly fleet: FleetSettings;
  readonly nodes: readonly NodeEntry[];
  readonly membership: Membership;
  readonly held: HeldService | undefined;
  readonly quota: Quota;
  readonly taken: Map<string, string>;
  readonly holderText: (uid: string) => string;
}

type Refusal = Verdict<RefusalReason>;
type PortRefusals = ReadonlyMap<ServicePort, Refusal>;

/** Decides one Service; counts what it gets in `quota` and `taken`. */
export function decide(service: ServiceObject, context: DecisionContext): Decision {
  const { held, membership } = context;
  const parsed = settingsFor(service);
  const tenant = membership.kind === 'tenant' ? membership.tenant : heldTenant(held);
  const settings =
    parsed.kind === 'settings' && membership.kind === 'tenant' ? parsed.settings : (held?.settings ?? null);
  const objection = objectionTo(membership, parsed);
  if (tenant === undefined || settings === null) {
    if (objection === undefined) throw new Error('without objection a Service has tenant and settings');
    return refused(service, tenant?.name ?? null, objection);
  }
  const badPorts = portRefusals(service, { tenant, ...context });
  const ports = service.ports.filter((port) => !badPorts.has(port));
  const refusal = wholeRefusal(ports, badPorts, { tenant, ...context });
  if (refusal !== undefined) return refused(service, tenant.name, objection ?? refusal, badPorts);
  const result = place({ ...context, service, ports });
  if (result.kind === 'conflict') {
    return refused(service, tenant.name, objection ?? { reason: 'PortConflict', message: result.message }, badPorts);
  }
  const placement: Placement =
    result.kind === 'placed' ? result.placement : { listeners: [], nodes: [], conflicts: new Map() };
  return served(service, { tenant, settings, objection, placement, badPorts }, context);
}

function objectionTo(membership: Membership, parsed: ReturnType<typeof settingsFor>): Refusal | undefined {
  if (membership.kind === 'disputed') return { reason: 'TenantConflict', message: membership.message };
  if (parsed.kind === 'invalid') return { reason: 'InvalidAnnotation', message: parsed.mistakes.join('; ') };
  return undefined;
}

/** A Service in dispute goes on under the tenant that it had, whose limits are not known here. */
function heldTenant(held: HeldService | undefined): Tenant | undefined {
  return held && { name: held.tenant, policy: null, namespaces: [], limits: {} };
}

type PortContext = DecisionContext & { readonly tenant: Tenant };

function portRefusals(service: ServiceObject, context: PortContext): PortRefusals {
  const { fleet, membership, held, quota, tenant, nodes, taken } = context;
  const refusals = new Map<ServicePort, Refusal>();
  let left = quota.portsLeft(tenant);
  const isHeld = (port: ServicePort): boolean => holdsPort(service, port, { nodes, taken });
  // Ports that serve come first, so that a new one never takes the place of an old one under a limit.
  const inOrder = held ? [...service.ports].sort((a, b) => Number(isHeld(b)) - Number(isHeld(a))) : service.ports;
  for (const port of inOrder) {
    const refusal = portRefusal(port, fleet);
    if (refusal !== undefined) refusals.set(port, refusal);
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

/** Why nothing of the Service can be served. What serves is never measured against the limits again. */
function wholeRefusal(
  ports: readonly ServicePort[],
  badPorts: PortRefusals,
  { held, tenant, quota }: PortContext,
): Refusal | undefined {
  const bad = [...badPorts.values()];
  const reserved = bad.find(({ reason }) => reason === 'PortReserved');
  if (!held && reserved !== undefined) return reserved;
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
  return { service, tenant, accepted: verdict, degraded: [], settings: null, ports, nodes: [], listeners: [] };
}

interface Served {
  readonly tenant: Tenant;
  readonly settings: ServiceSettings;
  readonly objection: Refusal | undefined;
  readonly placement: Placement;
  readonly badPorts: PortRefusals;
}

function served(service: ServiceObject, given: Served, { quota, nodes }: DecisionContext): Decision {
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
    degraded: degradedFor(service, placement, nodes.length),
    settings,
    ports: portEntries(service, badPorts),
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

function degradedFor(service: ServiceObject, placement: Placement, nodes: number): Verdict<DegradedReason>[] {
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
  if (placement.nodes.length > 0 && placement.nodes.length < nodes) {
    degraded.push({
      reason: 'FewerNodes',
      message: `served on ${placement.nodes.length} of ${nodes} nodes: its ports or address family are not free on the others`,
    });
  }
  return degraded;
}
