import { joinItems } from '../message-text.ts';
import type { ServiceObject, ServicePort, SliceObject } from '../snapshot.ts';
import { type Entry, type PortEntry, type ServiceEntry, serviceId } from '../table/entry.ts';
import type { ServedPortNames } from './allocate/allocations.ts';
import { portKey } from './allocate/port-key.ts';
import type { Decision } from './decision.ts';
import { type EndpointAddressCheck, NOT_A_POD_ADDRESS } from './endpoint-trust.ts';
import { endpointsFor, portNameKey, type ServiceEndpoints, type SliceIndex } from './endpoints.ts';

// From what was decided about a Service to its part of the table: with its endpoints, and what is to be said of it.
export interface TranslateServiceContext {
  readonly slices: SliceIndex;
  readonly checkAddress: EndpointAddressCheck;
  /** What of its tenant's limits is exceeded. */
  readonly excess: string | undefined;
  /** As they were served before. */
  readonly before: ServedPortNames;
}

const NO_ENDPOINTS: ServiceEndpoints = { entries: [], forbidden: [] };

export function translateService(
  decision: Decision,
  { slices, checkAddress, excess, before }: TranslateServiceContext,
): TranslatedService {
  if (decision.settings === null) return { ...decision, endpoints: NO_ENDPOINTS };
  const { service, degraded } = decision;
  const former = formerPortNames(service, slices.of(service), before);
  const ports = service.ports.filter((_, i) => decision.ports[i]?.error === null).map((port) => withName(port, former));
  const endpoints = endpointsFor({ ...service, ports }, slices.of(service), checkAddress);
  const isFine = decision.accepted.reason === 'Accepted' && endpoints.forbidden.length > 0;
  return {
    ...decision,
    ports: former.size === 0 ? decision.ports : decision.ports.map((port) => withFormerName(port, former)),
    endpoints,
    degraded: excess === undefined ? degraded : [...degraded, { reason: 'OverLimit', message: excess }],
    accepted: isFine ? { reason: 'EndpointForbidden', message: forbiddenMessage(endpoints) } : decision.accepted,
  };
}

/**
 * Ports that were renamed and that slices still have under the old name: the controller that makes them follows a moment later, and
 * until it has done so they are the endpoints. Slices made by hand have to say what they mean.
 */
function formerPortNames(
  service: ServiceObject,
  slices: readonly SliceObject[],
  before: ServedPortNames,
): ReadonlyMap<string, string | null> {
  const former = new Map<string, string | null>();
  if (!service.hasSelector || before.size === 0) return former;
  const inSlices = new Set(slices.flatMap(({ ports }) => ports.map(portNameKey)));
  const own = new Set(service.ports.map(portNameKey));
  for (const port of service.ports) {
    const name = before.get(portKey(port));
    if (name === undefined || inSlices.has(portNameKey(port))) continue;
    const key = portNameKey({ ...port, name });
    if (inSlices.has(key) && !own.has(key)) former.set(portKey(port), name);
  }
  return former;
}

function withName(port: ServicePort, former: ReadonlyMap<string, string | null>): ServicePort {
  const name = former.get(portKey(port));
  return name === undefined ? port : { ...port, name };
}

function withFormerName(port: PortEntry, former: ReadonlyMap<string, string | null>): PortEntry {
  const formerName = former.get(portKey(port));
  return formerName === undefined || port.error !== null ? port : { ...port, formerName };
}

/** All entries of a Service. */
export function serviceEntriesFor(outcome: TranslatedService): readonly Entry[] {
  const certificates = outcome.certificate === undefined ? [] : [outcome.certificate];
  return [serviceEntry(outcome), ...certificates, ...outcome.listeners, ...outcome.endpoints.entries];
}

function serviceEntry({
  service,
  tenant,
  accepted,
  degraded,
  settings,
  ports,
  pool,
  nodes,
}: TranslatedService): ServiceEntry {
  const { uid, namespace, name } = service;
  const kind = 'service';
  return { kind, id: serviceId(uid), uid, namespace, name, tenant, accepted, degraded, ports, pool, nodes, settings };
}

function forbiddenMessage({ forbidden }: ServiceEndpoints): string {
  const mayBeAllowed = forbidden.some((text) => text.endsWith(NOT_A_POD_ADDRESS));
  const help = mayBeAllowed ? ', or ask the operator for allowedEndpointCIDRs in the TenantPolicy' : '';
  return `endpoints that may not be used are left out: ${joinItems(forbidden)}; give addresses of pods of this namespace${help}`;
}

/** A decision with the endpoints of what it serves. */
export interface TranslatedService extends Decision {
  readonly endpoints: ServiceEndpoints;
}
