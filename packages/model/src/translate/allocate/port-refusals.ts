// Which ports of a Service cannot be served whatever is free, and whether that refuses all of it.

import type { FleetSettings } from '../../fleet-settings.ts';
import { joinItems, joinSentences, portText } from '../../message-text.ts';
import { formatPortRanges, isPortInRanges } from '../../port-range.ts';
import type { RefusalReason } from '../../reason.ts';
import { reservationFor } from '../../reserved-ports.ts';
import type { ServiceSettings } from '../../settings/service-settings.ts';
import { mayTerminateTls } from '../../settings/tls-annotations.ts';
import type { ServiceObject, ServicePort } from '../../snapshot.ts';
import type { StatusReason } from '../../table/entry.ts';
import { type Membership, policyText, type Tenant } from '../tenancy.ts';
import type { ServiceAllocation } from './allocations.ts';
import { allocatedPortTest } from './placement.ts';
import type { PortAllocations } from './port-allocations.ts';
import { portKey } from './port-key.ts';
import type { QuotaRecorder } from './quota.ts';
import {
  currentPortModes,
  hostNotAllowedRefusal,
  hostsRequiredRefusal,
  isFleetSharedPort,
  type PortModes,
} from './shared-ports.ts';

export type Refusal = StatusReason<RefusalReason>;
export type PortRefusals = ReadonlyMap<ServicePort, Refusal>;

export interface PortRefusalContext {
  readonly fleet: FleetSettings;
  readonly membership: Membership;
  readonly tenant: Tenant;
  readonly allocation: ServiceAllocation | undefined;
  readonly quota: QuotaRecorder;
  readonly portAllocations: PortAllocations;
  /** How it would have each port, and with which hosts those that are shared. */
  readonly modes: PortModes;
  readonly hosts: readonly string[];
  /** Why it is not given what it asks for; undefined: it is. */
  readonly objection: Refusal | undefined;
  /** What it asks for; undefined: that cannot be read. */
  readonly requestedSettings: ServiceSettings | undefined;
}

/** By port, why it is not served. */
export function portRefusalsFor(service: ServiceObject, context: PortRefusalContext): PortRefusals {
  const { fleet, membership, allocation, quota, tenant, portAllocations, modes, hosts, objection, requestedSettings } =
    context;
  const refusals = new Map<ServicePort, Refusal>();
  let more = 0;
  const isBound = allocatedPortTest(portAllocations.listenersOf(service.uid));
  // Also without a node that it could be bound on: nodes that go and come back take nothing from anybody.
  const isHeld = (port: ServicePort): boolean => isBound(port) || allocation?.ports.has(portKey(port)) === true;
  const has = currentPortModes(portAllocations.listenersOf(service.uid), allocation?.exclusivePorts);
  const hostsRefusal = hostNotAllowedRefusal(hosts, tenant);
  // Ports that serve come first, so that a new one never takes the place of an old one under a limit.
  const inOrder = allocation ? [...service.ports].sort((a, b) => Number(isHeld(b)) - Number(isHeld(a))) : service.ports;
  for (const port of inOrder) {
    const refusal = unsupportedProtocolRefusal(port) ?? (isHeld(port) ? undefined : reservedPortRefusal(port, fleet));
    if (refusal !== undefined) refusals.set(port, refusal);
    else if (modes.get(port) === 'alone' && has.get(portKey(port)) !== 'alone' && isFleetSharedPort(port, fleet)) {
      refusals.set(port, hostsRequiredRefusal(port, tenant));
    } else if (!isPortAllowed(port, tenant) && !isHeld(port)) refusals.set(port, portNotAllowedRefusal(port, tenant));
    // Its limits are not known: what serves goes on, and nothing is added to it.
    else if (membership.kind === 'disputed' && !isHeld(port)) {
      refusals.set(port, { reason: 'TenantConflict', message: `port ${portText(port)}: ${membership.message}` });
    } else if (
      allocation &&
      objection !== undefined &&
      !isHeld(port) &&
      mayTerminateTls(service, requestedSettings, port)
    ) {
      // As it was accepted last its bytes would pass undecrypted, and past the client CA.
      refusals.set(port, objection);
    } else if (modes.get(port) === 'shared' && !isHeld(port) && hostsRefusal !== undefined) {
      refusals.set(port, hostsRefusal);
    } else if (allocation && !isHeld(port) && quota.portsLeft(tenant, more + 1) <= more) {
      refusals.set(port, {
        reason: 'QuotaExceeded',
        message: `port ${portText(port)}: ${quota.portRefusalFor(tenant)}`,
      });
    } else if (!isHeld(port)) more += 1;
  }
  return inPortOrder(service.ports, refusals);
}

/** So that they are told alike, in whichever order they were found. */
export function inPortOrder(ports: readonly ServicePort[], refusals: PortRefusals): PortRefusals {
  const places = new Map(ports.map((port, place) => [port, place]));
  return new Map([...refusals].sort(([a], [b]) => (places.get(a) ?? 0) - (places.get(b) ?? 0)));
}

function unsupportedProtocolRefusal(port: ServicePort): Refusal | undefined {
  if (port.protocol === 'TCP' || port.protocol === 'UDP') return undefined;
  return {
    reason: 'UnsupportedProtocol',
    message: `port ${portText(port)}: ${port.protocol} is not served, only TCP and UDP are; use one of these, or remove the port`,
  };
}

function reservedPortRefusal(port: ServicePort, fleet: FleetSettings): Refusal | undefined {
  const reservation = reservationFor(port.port, fleet);
  if (reservation === undefined) return undefined;
  const all = reservation.from < reservation.to ? `, as all of ${formatPortRanges([reservation]).join()},` : '';
  const why = reservation.by === 'always' ? 'for SSH, Kubernetes or Weir itself' : 'for programs of the operator';
  const message = `port ${portText(port)} is reserved on the nodes${all} ${why}; use another port`;
  return { reason: 'PortReserved', message };
}

/** Whether the tenant's policy lets it have the port. */
export function isPortAllowed({ port }: ServicePort, { grants }: Tenant): boolean {
  return grants.allowedPorts === null || isPortInRanges(port, grants.allowedPorts);
}

function portNotAllowedRefusal(port: ServicePort, { name, policy, grants }: Tenant): Refusal {
  const ranges = formatPortRanges(grants.allowedPorts ?? []);
  const may = ranges.length === 0 ? 'may have no ports at all' : `may have only ${joinItems(ranges)}`;
  const help = ranges.length === 0 ? 'ask' : 'use one of them, or ask';
  const message = `port ${portText(port)} is not allowed: tenant "${name}" ${may}; ${help} for it in ${policyText(policy)}`;
  return { reason: 'PortNotAllowed', message };
}

/** Why nothing of the Service can be served. What serves is never measured against the limits again. */
export function serviceRefusalFor(
  ports: readonly ServicePort[],
  badPorts: PortRefusals,
  { allocation, tenant, quota }: Pick<PortRefusalContext, 'allocation' | 'tenant' | 'quota'>,
): Refusal | undefined {
  const bad = [...badPorts.values()];
  const never = bad.find(({ reason }) => reason === 'PortReserved' || reason === 'PortNotAllowed');
  if (!allocation && never !== undefined) return combineRefusals(never, bad);
  if (ports.length === 0) return bad[0] === undefined ? NO_PORTS : combineRefusals(bad[0], bad);
  const message = allocation ? undefined : quota.refusalFor(tenant, ports.length);
  return message === undefined ? undefined : { reason: 'QuotaExceeded', message };
}

const NO_PORTS: Refusal = { reason: 'UnsupportedProtocol', message: 'the Service has no ports; add one' };

/** A tenant shall not find out port by port: the first reason, and every port of which it holds. */
function combineRefusals({ reason }: Refusal, bad: readonly Refusal[]): Refusal {
  const messages = new Set(bad.filter((each) => each.reason === reason).map(({ message }) => message));
  return { reason, message: joinSentences([...messages]) };
}
