// Finds the ports that are refused even if they are free on the nodes, because they are reserved, not allowed or over a limit. Also
// decides whether refused ports lead to a refusal of the whole Service.

import type { FleetSettings } from '../../fleet-settings.ts';
import { joinItems, joinSentences, portText } from '../../message-text.ts';
import { formatPortRanges, isPortInRanges } from '../../port-range.ts';
import type { RefusalReason } from '../../reason.ts';
import { reservationFor } from '../../reserved-ports.ts';
import { isHttpPort } from '../../settings/http-annotations.ts';
import { withSettingsOf } from '../../settings/parse-settings.ts';
import type { ServiceSettings } from '../../settings/service-settings.ts';
import { mayTerminateTls } from '../../settings/tls-annotations.ts';
import type { ServiceObject, ServicePort } from '../../snapshot.ts';
import type { StatusReason } from '../../table/entry.ts';
import { type AcceptedContent, serviceBytes } from '../table-bytes.ts';
import { type Membership, policyText, type Tenant } from '../tenancy.ts';
import type { ServiceAllocation } from './allocations.ts';
import { portKey } from './allocations.ts';
import { allocatedPortTest, nodesWithPorts } from './placement.ts';
import type { PortAllocations } from './port-allocations.ts';
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
  readonly modes: PortModes;
  /** The hosts that the Service has or requests on shared ports. */
  readonly hosts: readonly string[];
  /** Why the requested settings are refused; undefined if they are accepted. */
  readonly settingsRefusal: Refusal | undefined;
  /** The settings that the annotations request; undefined if the annotations are invalid. */
  readonly requestedSettings: ServiceSettings | undefined;
}

/** Returns the refused ports with the reasons, in the order of the Service's ports. Every other port may be served. */
export function portRefusalsFor(service: ServiceObject, context: PortRefusalContext): PortRefusals {
  const { fleet, membership, allocation, quota, tenant, portAllocations, modes, hosts, requestedSettings } = context;
  const { settingsRefusal } = context;
  const refusals = new Map<ServicePort, Refusal>();
  let newPorts = 0;
  const hasListener = allocatedPortTest(portAllocations.listenersOf(service.uid));
  // A port stays allocated even if no node can bind it, so that the Service gets the port back when a node returns.
  const isAllocated = (port: ServicePort): boolean =>
    hasListener(port) || allocation?.ports.has(portKey(port)) === true;
  const currentModes = currentPortModes(portAllocations.listenersOf(service.uid), allocation?.exclusivePorts);
  const hostsRefusal = hostNotAllowedRefusal(hosts, tenant);
  // Checks allocated ports before new ports, because only new ports can exceed a limit.
  const allocatedFirst = allocation
    ? [...service.ports].sort((a, b) => Number(isAllocated(b)) - Number(isAllocated(a)))
    : service.ports;
  // A new port of a served Service gets a listener on each node of the Service.
  const nodeCount = Math.max(1, nodesWithPorts(service.ports, portAllocations.listenersOf(service.uid)).size);
  const hasRoomFor = (count: number): boolean => quota.portsLeft(tenant, count) >= count;
  for (const port of allocatedFirst) {
    const refusal =
      unsupportedProtocolRefusal(port) ?? (isAllocated(port) ? undefined : reservedPortRefusal(port, fleet));
    if (refusal !== undefined) refusals.set(port, refusal);
    else if (
      modes.get(port) === 'exclusive' &&
      currentModes.get(portKey(port)) !== 'exclusive' &&
      isFleetSharedPort(port, fleet)
    ) {
      refusals.set(port, hostsRequiredRefusal(port, tenant));
    } else if (!isPortAllowed(port, tenant) && !isAllocated(port))
      refusals.set(port, portNotAllowedRefusal(port, tenant));
    // While the tenant is disputed, its limits are unknown. The Service keeps its ports and gets no new port.
    else if (membership.kind === 'disputed' && !isAllocated(port)) {
      refusals.set(port, { reason: 'TenantConflict', message: `port ${portText(port)}: ${membership.message}` });
    } else if (
      allocation &&
      settingsRefusal !== undefined &&
      !isAllocated(port) &&
      (mayTerminateTls(service, requestedSettings, port) || isHttpPort(service, port))
    ) {
      // With the last accepted settings, the proxy would relay this new port without terminating TLS and without checking client
      // certificates, or would relay bytes and not requests, for every host and path.
      refusals.set(port, settingsRefusal);
    } else if (modes.get(port) === 'shared' && !isAllocated(port) && hostsRefusal !== undefined) {
      refusals.set(port, hostsRefusal);
    } else if (allocation && !isAllocated(port) && !hasRoomFor((newPorts + 1) * nodeCount)) {
      refusals.set(port, {
        reason: 'QuotaExceeded',
        message: `port ${portText(port)}: ${quota.portRefusalFor(tenant)}`,
      });
    } else if (!isAllocated(port)) newPorts += 1;
  }
  return inPortOrder(service.ports, refusals);
}

/**
 * Returns a Service without the ports above the fleet's limit, and the refusal if the Service has such ports. The Service keeps its
 * allocated ports, even above the limit. Bounds the work and the table entry of a Service with tens of thousands of ports.
 */
export function withinPortLimit(
  service: ServiceObject,
  { fleet, allocation, portAllocations }: Pick<PortRefusalContext, 'fleet' | 'allocation' | 'portAllocations'>,
): { readonly service: ServiceObject; readonly portLimitRefusal: Refusal | undefined } {
  const { maxPortsPerService } = fleet;
  if (service.ports.length <= maxPortsPerService) return { service, portLimitRefusal: undefined };
  const hasListener = allocatedPortTest(portAllocations.listenersOf(service.uid));
  const isAllocated = (port: ServicePort): boolean =>
    hasListener(port) || allocation?.ports.has(portKey(port)) === true;
  let free = maxPortsPerService - service.ports.filter(isAllocated).length;
  const ports = service.ports.filter((port) => {
    if (isAllocated(port)) return true;
    free -= 1;
    return free >= 0;
  });
  if (ports.length === service.ports.length) return { service, portLimitRefusal: undefined };
  const further = allocation === undefined ? '' : '; the further ports are not served';
  const message = `the Service has ${service.ports.length} ports, and a Service may have at most ${maxPortsPerService}${further}; create several Services, or ask the operator for a higher controller.maxPortsPerService`;
  return { service: withSettingsOf(service, { ports }), portLimitRefusal: { reason: 'QuotaExceeded', message } };
}

/** Sorts refusals by the order of the Service's ports, so that messages do not depend on the order in which the refusals were found. */
export function inPortOrder(ports: readonly ServicePort[], refusals: PortRefusals): PortRefusals {
  const positions = new Map(ports.map((port, position) => [port, position]));
  return new Map([...refusals].sort(([a], [b]) => (positions.get(a) ?? 0) - (positions.get(b) ?? 0)));
}

function unsupportedProtocolRefusal(port: ServicePort): Refusal | undefined {
  if (port.protocol === 'TCP' || port.protocol === 'UDP') return undefined;
  return {
    reason: 'UnsupportedProtocol',
    message: `port ${portText(port)}: Weir does not serve ${port.protocol}; use TCP or UDP, or remove the port`,
  };
}

function reservedPortRefusal(port: ServicePort, fleet: FleetSettings): Refusal | undefined {
  const reservation = reservationFor(port.port, fleet);
  if (reservation === undefined) return undefined;
  const all =
    reservation.from < reservation.to ? ` (like the whole range ${formatPortRanges([reservation]).join()})` : '';
  const why = reservation.by === 'always' ? 'for SSH, Kubernetes or Weir itself' : 'for programs of the operator';
  const message = `port ${portText(port)} is reserved on the nodes ${why}${all}; use another port`;
  return { reason: 'PortReserved', message };
}

/** Reports whether the tenant's policy allows the port. */
export function isPortAllowed({ port }: ServicePort, { grants }: Tenant): boolean {
  return grants.allowedPorts === null || isPortInRanges(port, grants.allowedPorts);
}

function portNotAllowedRefusal(port: ServicePort, { name, policy, grants }: Tenant): Refusal {
  const ranges = formatPortRanges(grants.allowedPorts ?? []);
  const may = ranges.length === 0 ? 'may have no ports at all' : `may have only ${joinItems(ranges)}`;
  const help = ranges.length === 0 ? 'ask' : 'use one of these ports, or ask';
  const message = `port ${portText(port)} is not allowed: tenant "${name}" ${may}; ${help} the operator to allow the port in ${policyText(policy)}`;
  return { reason: 'PortNotAllowed', message };
}

/**
 * Returns why the whole Service is refused; undefined if the Service is not refused. The limits are not checked again for a Service that
 * has an allocation.
 */
export function serviceRefusalFor(
  ports: readonly ServicePort[],
  portRefusals: PortRefusals,
  {
    allocation,
    tenant,
    quota,
    parts,
  }: Pick<PortRefusalContext, 'allocation' | 'tenant' | 'quota'> & { readonly parts: AcceptedContent },
): Refusal | undefined {
  const refusals = [...portRefusals.values()];
  const forbidden = refusals.find(({ reason }) => reason === 'PortReserved' || reason === 'PortNotAllowed');
  if (!allocation && forbidden !== undefined) return combineRefusals(forbidden, refusals);
  if (ports.length === 0) return refusals[0] === undefined ? NO_PORTS : combineRefusals(refusals[0], refusals);
  const usage = {
    ports: ports.length,
    bytes: serviceBytes(parts, { ports: ports.length, portsOnNodes: ports.length }),
  };
  const message = allocation ? undefined : quota.refusalFor(tenant, usage);
  return message === undefined ? undefined : { reason: 'QuotaExceeded', message };
}

const NO_PORTS: Refusal = { reason: 'UnsupportedProtocol', message: 'the Service has no ports; add one' };

/** Combines all refusals with the given reason into one, so that a tenant sees all these ports at once. */
function combineRefusals({ reason }: Refusal, refusals: readonly Refusal[]): Refusal {
  const messages = new Set(refusals.filter((refusal) => refusal.reason === reason).map(({ message }) => message));
  return { reason, message: joinSentences([...messages]) };
}
