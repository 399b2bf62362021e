// From what was decided about a Service to its part of the table: with its endpoints, and what is to be said of it.
import { type Entry, type ServiceEntry, serviceId } from '../table/entry.ts';
import type { Decision } from './decision.ts';
import { endpointsFor, type ServiceEndpoints } from './endpoints.ts';
import type { Outcome } from './outcome.ts';
import type { SliceIndex } from './slice-index.ts';
import { listed } from './text.ts';
import { NOT_OF_A_POD, type TrustCheck } from './trust.ts';

export interface OutcomeTools {
  readonly slices: SliceIndex;
  readonly mayUse: TrustCheck;
  /** What of its tenant's limits is exceeded. */
  readonly excess: string | undefined;
}

const NO_ENDPOINTS: ServiceEndpoints = { entries: [], forbidden: [] };

export function outcomeFor(decision: Decision, { slices, mayUse, excess }: OutcomeTools): Outcome {
  if (decision.settings === null) return { ...decision, endpoints: NO_ENDPOINTS };
  const { service, degraded } = decision;
  const served = { ...service, ports: service.ports.filter((_, i) => decision.ports[i]?.error === null) };
  const endpoints = endpointsFor(served, slices.of(service), mayUse);
  const isFine = decision.accepted.reason === 'Accepted' && endpoints.forbidden.length > 0;
  return {
    ...decision,
    endpoints,
    degraded: excess === undefined ? degraded : [...degraded, { reason: 'OverLimit', message: excess }],
    accepted: isFine ? { reason: 'EndpointForbidden', message: forbiddenMessage(endpoints) } : decision.accepted,
  };
}

/** All entries of a Service. */
export function entriesFor(outcome: Outcome): readonly Entry[] {
  return [serviceEntry(outcome), ...outcome.listeners, ...outcome.endpoints.entries];
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
