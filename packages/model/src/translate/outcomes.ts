// From what was decided about a Service to its part of the table: with its endpoints, and what is to be said of it.
import type { ServiceObject, ServicePort, SliceObject } from '../snapshot.ts';
import { type Entry, type PortEntry, type ServiceEntry, serviceId } from '../table/entry.ts';
import type { Decision } from './decision.ts';
import { endpointsFor, namedKey, type ServiceEndpoints } from './endpoints.ts';
import type { ServedPorts } from './held.ts';
import type { Outcome } from './outcome.ts';
import { portKey } from './port-key.ts';
import type { SliceIndex } from './slice-index.ts';
import { listed } from './text.ts';
import { NOT_OF_A_POD, type TrustCheck } from './trust.ts';

export interface OutcomeTools {
  readonly slices: SliceIndex;
  readonly mayUse: TrustCheck;
  /** What of its tenant's limits is exceeded. */
  readonly excess: string | undefined;
  /** As they were served before. */
  readonly before: ServedPorts;
}

const NO_ENDPOINTS: ServiceEndpoints = { entries: [], forbidden: [] };

export function outcomeFor(decision: Decision, { slices, mayUse, excess, before }: OutcomeTools): Outcome {
  if (decision.settings === null) return { ...decision, endpoints: NO_ENDPOINTS };
  const { service, degraded } = decision;
  const former = formerNames(service, slices.of(service), before);
  const ports = service.ports.filter((_, i) => decision.ports[i]?.error === null).map((port) => withName(port, former));
  const endpoints = endpointsFor({ ...service, ports }, slices.of(service), mayUse);
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
function formerNames(
  service: ServiceObject,
  slices: readonly SliceObject[],
  before: ServedPorts,
): ReadonlyMap<string, string | null> {
  const former = new Map<string, string | null>();
  if (!service.hasSelector || before.size === 0) return former;
  const inSlices = new Set(slices.flatMap(({ ports }) => ports.map(namedKey)));
  const own = new Set(service.ports.map(namedKey));
  for (const port of service.ports) {
    const name = before.get(portKey(port));
    if (name === undefined || inSlices.has(namedKey(port))) continue;
    const key = namedKey({ ...port, name });
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
export function entriesFor(outcome: Outcome): readonly Entry[] {
  const certificates = outcome.certificate === undefined ? [] : [outcome.certificate];
  return [serviceEntry(outcome), ...certificates, ...outcome.listeners, ...outcome.endpoints.entries];
}

function serviceEntry({ service, tenant, accepted, degraded, settings, ports, pool, nodes }: Outcome): ServiceEntry {
  const { uid, namespace, name } = service;
  const kind = 'service';
  return { kind, id: serviceId(uid), uid, namespace, name, tenant, accepted, degraded, ports, pool, nodes, settings };
}

function forbiddenMessage({ forbidden }: ServiceEndpoints): string {
  const mayBeAllowed = forbidden.some((text) => text.endsWith(NOT_OF_A_POD));
  const help = mayBeAllowed ? ', or ask the operator for allowedEndpointCIDRs in the TenantPolicy' : '';
  return `endpoints that may not be used are left out: ${listed(forbidden)}; give addresses of pods of this namespace${help}`;
}
