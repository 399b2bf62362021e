// Which ports of a Service cannot be served whatever is free, and whether that refuses all of it.
import { isInRanges, rangesText } from '../port-range.ts';
import type { RefusalReason } from '../reason.ts';
import { reservationOf } from '../reserved-ports.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import { mayEndTls } from '../settings/tls-annotations.ts';
import type { FleetSettings, ServiceObject, ServicePort } from '../snapshot.ts';
import type { Verdict } from '../table/entry.ts';
import type { AskedQuota } from './asked-quota.ts';
import type { HeldService } from './held.ts';
import { heldPorts } from './placement.ts';
import { portKey } from './port-key.ts';
import { isSharedByFleet, modesOf, notAllowedHosts, type PortModes, unnamedRefusal } from './shared-ports.ts';
import type { TakenPorts } from './taken-ports.ts';
import { type Membership, policyText, type Tenant } from './tenancy.ts';
import { listed, portText, sentences } from './text.ts';

export type Refusal = Verdict<RefusalReason>;
export type PortRefusals = ReadonlyMap<ServicePort, Refusal>;

export interface PortContext {
  readonly fleet: FleetSettings;
  readonly membership: Membership;
  readonly tenant: Tenant;
  readonly held: HeldService | undefined;
  readonly quota: AskedQuota;
  readonly taken: TakenPorts;
  /** How it would have each port, and with which hosts those that are shared. */
  readonly modes: PortModes;
  readonly hosts: readonly string[];
  /** Why it is not given what it asks for; undefined: it is. */
  readonly objection: Refusal | undefined;
  /** What it asks for; undefined: that cannot be read. */
  readonly asked: ServiceSettings | undefined;
}

/** By port, why it is not served. */
export function portRefusals(service: ServiceObject, context: PortContext): PortRefusals {
  const { fleet, membership, held, quota, tenant, taken, modes, hosts, objection, asked } = context;
  const refusals = new Map<ServicePort, Refusal>();
  let more = 0;
  const isBound = heldPorts(taken.listenersOf(service.uid));
  // Also without a node that it could be bound on: nodes that go and come back take nothing from anybody.
  const isHeld = (port: ServicePort): boolean => isBound(port) || held?.ports.has(portKey(port)) === true;
  const has = modesOf(taken.listenersOf(service.uid), held?.alone);
  const hostsRefusal = notAllowedHosts(hosts, tenant);
  // Ports that serve come first, so that a new one never takes the place of an old one under a limit.
  const inOrder = held ? [...service.ports].sort((a, b) => Number(isHeld(b)) - Number(isHeld(a))) : service.ports;
  for (const port of inOrder) {
    const refusal = notServed(port) ?? (isHeld(port) ? undefined : reserved(port, fleet));
    if (refusal !== undefined) refusals.set(port, refusal);
    else if (modes.get(port) === 'alone' && has.get(portKey(port)) !== 'alone' && isSharedByFleet(port, fleet)) {
      refusals.set(port, unnamedRefusal(port, tenant));
    } else if (!isAllowed(port, tenant) && !isHeld(port)) refusals.set(port, notAllowed(port, tenant));
    // Its limits are not known: what serves goes on, and nothing is added to it.
    else if (membership.kind === 'disputed' && !isHeld(port)) {
      refusals.set(port, { reason: 'TenantConflict', message: `port ${portText(port)}: ${membership.message}` });
    } else if (held && objection !== undefined && !isHeld(port) && mayEndTls(service, asked, port)) {
      // As it was accepted last its bytes would pass undecrypted, and past the client CA.
      refusals.set(port, objection);
    } else if (modes.get(port) === 'shared' && !isHeld(port) && hostsRefusal !== undefined) {
      refusals.set(port, hostsRefusal);
    } else if (held && !isHeld(port) && quota.portsLeft(tenant, more + 1) <= more) {
      refusals.set(port, {
        reason: 'QuotaExceeded',
        message: `port ${portText(port)}: ${quota.portRefusalFor(tenant)}`,
      });
    } else if (!isHeld(port)) more += 1;
  }
  return inOrderOf(service.ports, refusals);
}

/** So that they are told alike, in whichever order they were found. */
export function inOrderOf(ports: readonly ServicePort[], refusals: PortRefusals): PortRefusals {
  const places = new Map(ports.map((port, place) => [port, place]));
  return new Map([...refusals].sort(([a], [b]) => (places.get(a) ?? 0) - (places.get(b) ?? 0)));
}

function notServed(port: ServicePort): Refusal | undefined {
  if (port.protocol === 'TCP' || port.protocol === 'UDP') return undefined;
  return {
    reason: 'UnsupportedProtocol',
    message: `port ${portText(port)}: ${port.protocol} is not served, only TCP and UDP are; use one of these, or remove the port`,
  };
}

function reserved(port: ServicePort, fleet: FleetSettings): Refusal | undefined {
  const reservation = reservationOf(port.port, fleet);
  if (reservation === undefined) return undefined;
  const all = reservation.from < reservation.to ? `, as all of ${rangesText([reservation]).join()},` : '';
  const why = reservation.by === 'always' ? 'for SSH, Kubernetes or Weir itself' : 'for programs of the operator';
  const message = `port ${portText(port)} is reserved on the nodes${all} ${why}; use another port`;
  return { reason: 'PortReserved', message };
}

/** Whether the tenant's policy lets it have the port. */
export function isAllowed({ port }: ServicePort, { grants }: Tenant): boolean {
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
export function wholeRefusal(
  ports: readonly ServicePort[],
  badPorts: PortRefusals,
  { held, tenant, quota }: Pick<PortContext, 'held' | 'tenant' | 'quota'>,
): Refusal | undefined {
  const bad = [...badPorts.values()];
  const never = bad.find(({ reason }) => reason === 'PortReserved' || reason === 'PortNotAllowed');
  if (!held && never !== undefined) return together(never, bad);
  if (ports.length === 0) return bad[0] === undefined ? NO_PORTS : together(bad[0], bad);
  const message = held ? undefined : quota.refusalFor(tenant, ports.length);
  return message === undefined ? undefined : { reason: 'QuotaExceeded', message };
}

const NO_PORTS: Refusal = { reason: 'UnsupportedProtocol', message: 'the Service has no ports; add one' };

/** A tenant shall not find out port by port: the first reason, and every port of which it holds. */
function together({ reason }: Refusal, bad: readonly Refusal[]): Refusal {
  const messages = new Set(bad.filter((each) => each.reason === reason).map(({ message }) => message));
  return { reason, message: sentences([...messages]) };
}
