// What a decision says of a Service, once it is clear what it gets: all that stands in its entry.

import type { DegradedReason } from '../reason.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { FleetSettings, ServiceObject, ServicePort } from '../snapshot.ts';
import type { CertificateEntry, ListenerEntry, PortEntry, ServiceEntry, StatusReason } from '../table/entry.ts';
import { dayOf } from '../usage/period.ts';
import type { QuotaRecorder } from './asked-quota.ts';
import { degradedReasonsFor, type ServedConfig } from './degraded.ts';
import type { ServiceAllocation } from './held.ts';
import { inPortOrder, type PortRefusals, type Refusal } from './port-refusals.ts';
import type { SecretIndex } from './secret-book.ts';
import { isFleetSharedPort } from './shared-ports.ts';
import type { Membership } from './tenancy.ts';
import { joinSentences } from './text.ts';

export interface ServiceResult {
  readonly service: ServiceObject;
  readonly tenant: string | null;
  readonly accepted: ServiceEntry['accepted'];
  readonly degraded: readonly StatusReason<DegradedReason>[];
  readonly settings: ServiceSettings | null;
  /** What its clients are shown where TLS ends here; undefined: it ends nowhere. */
  readonly certificate: CertificateEntry | undefined;
  readonly ports: readonly PortEntry[];
  readonly pool: string | null;
  readonly nodes: readonly string[];
  readonly listeners: readonly ListenerEntry[];
}

export interface ServiceResultContext {
  readonly fleet: FleetSettings;
  readonly secrets: SecretIndex;
  readonly membership: Membership;
  readonly allocation: ServiceAllocation | undefined;
  readonly quota: QuotaRecorder;
}

export function refusedResult(
  service: ServiceObject,
  tenant: string | null,
  verdict: Refusal,
  badPorts: PortRefusals = new Map(),
): ServiceResult {
  const ports = portEntries(service, badPorts);
  return {
    service,
    tenant,
    accepted: verdict,
    degraded: [],
    settings: null,
    certificate: undefined,
    ports,
    pool: null,
    nodes: [],
    listeners: [],
  };
}

export interface ServedInput extends ServedConfig {
  readonly refusal: Refusal | undefined;
}

export function servedResult(service: ServiceObject, given: ServedInput, context: ServiceResultContext): ServiceResult {
  const { fleet, membership, quota } = context;
  const { tenant, settings, placement, modes } = given;
  const badPorts = inPortOrder(service.ports, new Map([...given.badPorts, ...placement.conflicts]));
  const alone = new Set(service.ports.filter((port) => modes.get(port) === 'alone' && isFleetSharedPort(port, fleet)));
  // In dispute it counts for nobody: who has the name that it goes on under is not to be short of what a stranger has.
  if (membership.kind === 'tenant') quota.count(tenant.name, service, service.ports.length - badPorts.size);
  const bad = [...badPorts.values()];
  const first = bad[0];
  const shown = servedCertificateFor(service, settings, context);
  const accepted: ServiceEntry['accepted'] = (given.refusal && withCertificateExpiry(given.refusal, shown)) ??
    (first && {
      reason: first.reason,
      message: `${joinSentences([...new Set(bad.map(({ message }) => message))])}; the other ports are served`,
    }) ?? {
      reason: 'Accepted',
      message: `accepted for tenant "${tenant.name}"`,
    };
  return {
    service,
    tenant: tenant.name,
    accepted,
    degraded: degradedReasonsFor(service, given, fleet),
    settings,
    certificate: shown.certificate,
    ports: portEntries(service, badPorts, alone),
    pool: given.requirements.pool,
    nodes: placement.nodes,
    listeners: placement.listeners,
  };
}

/** Whoever reads of a mistake wants to know first whether clients notice. */
export function withStillServedText({ reason, message }: Refusal): Refusal {
  return { reason, message: `${message}; meanwhile it is served on as it was accepted last` };
}

/** `alone`: those that the fleet shares by now, and the Service has as it had them before. */
function portEntries(
  service: ServiceObject,
  badPorts: PortRefusals,
  alone: ReadonlySet<ServicePort> = new Set(),
): PortEntry[] {
  return service.ports.map((port) => ({
    name: port.name,
    port: port.port,
    protocol: port.protocol,
    error: badPorts.get(port) ?? null,
    ...(alone.has(port) && !badPorts.has(port) && { alone: true as const }),
  }));
}

/** What clients are shown: the present certificate, also while something else of the Service is refused; else the one that it had. */
interface ServedCertificate {
  readonly certificate: CertificateEntry | undefined;
  readonly isHeld: boolean;
}

function servedCertificateFor(
  service: ServiceObject,
  { tls }: ServiceSettings,
  { secrets, allocation }: ServiceResultContext,
): ServedCertificate {
  const credentials = tls && secrets.credentialsFor(service, tls);
  if (credentials?.kind === 'good') return { certificate: credentials.certificate, isHeld: false };
  return { certificate: tls && allocation?.certificate, isHeld: tls !== undefined };
}

/** It has nothing to take its place: so its end is to be known. */
function withCertificateExpiry(objection: Refusal, { certificate, isHeld }: ServedCertificate): Refusal {
  if (certificate === undefined || !isHeld) return objection;
  const { reason, message } = objection;
  return { reason, message: `${message}, with a certificate that is good until ${dayOf(certificate.notAfter)}` };
}
