import type { FleetSettings } from '../fleet-settings.ts';
import { countOf, joinItems, joinSentences, portsText } from '../message-text.ts';
import type { DegradedReason } from '../reason.ts';
import { reservationFor } from '../reserved-ports.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { ServiceObject, ServicePort } from '../snapshot.ts';
import type { CertificateEntry, ListenerEntry, PortEntry, ServiceEntry, StatusReason } from '../table/entry.ts';
import { dayOf } from '../usage/period.ts';
import type { ServiceAllocation } from './allocate/allocations.ts';
import type { Placement } from './allocate/placement.ts';
import type { NodeRequirements } from './allocate/pool-placement.ts';
import { inPortOrder, isPortAllowed, type PortRefusals, type Refusal } from './allocate/port-refusals.ts';
import type { QuotaRecorder } from './allocate/quota.ts';
import { isFleetSharedPort, type PortModes } from './allocate/shared-ports.ts';
import type { SecretIndex } from './secret-index.ts';
import { type Membership, policyText, type Tenant } from './tenancy.ts';

// What a decision says of a Service, once it is clear what it gets: all that stands in its entry.
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

export interface ServedConfig {
  readonly tenant: Tenant;
  readonly placement: Placement;
  readonly badPorts: PortRefusals;
  readonly requirements: NodeRequirements;
  readonly modes: PortModes;
  readonly settings: ServiceSettings;
  readonly secrets: SecretIndex;
}

/** What is served, and yet not as its tenant or the operator would have it. */
export function degradedReasonsFor(
  service: ServiceObject,
  { tenant, placement, badPorts, requirements, modes, settings, secrets }: ServedConfig,
  fleet: FleetSettings,
): StatusReason<DegradedReason>[] {
  const degraded: StatusReason<DegradedReason>[] = [];
  const expiry = settings.tls && secrets.expiryText(service, settings.tls);
  if (expiry !== undefined) degraded.push({ reason: 'CertificateExpiring', message: expiry });
  const nodePorts = service.ports.flatMap(({ nodePort }) =>
    nodePort !== null && nodePort > 0 ? String(nodePort) : [],
  );
  if (nodePorts.length > 0) {
    degraded.push({
      reason: 'NodePortBypass',
      message: `node ports (${joinItems(nodePorts)}) are open on every node and bypass limits, accounting and cut-off; set spec.allocateLoadBalancerNodePorts to false and clear the nodePort fields`,
    });
  }
  const lost =
    service.externalTrafficPolicy === 'Local' ? sourceAddressMessage(service, settings, badPorts) : undefined;
  if (lost !== undefined) degraded.push({ reason: 'SourceAddressNotPreserved', message: lost });
  if (placement.nodes.length > 0 && placement.nodes.length < requirements.nodeCount) {
    degraded.push({
      reason: 'FewerNodes',
      message: `served on ${placement.nodes.length} of the ${countOf(requirements.nodeCount, 'node')} that are wanted: no other node of ${requirements.nodesText} has its ports free, an address of its IP families and a proxy that answers, and is not cordoned; ask the operator for more nodes, or wish for fewer by annotation weir.dev/nodes`,
    });
  }
  const tolerated = service.ports.filter((port) => !badPorts.has(port) && !isPortAllowed(port, tenant));
  if (tolerated.length > 0) {
    const are = tolerated.length === 1 ? 'is' : 'are';
    degraded.push({
      reason: 'OverLimit',
      message: `${portsText(tolerated)} ${are} no longer allowed for tenant "${tenant.name}"; what serves goes on, and once given up it cannot be had again: ask for it in ${policyText(tenant.policy)}`,
    });
  }
  const reserved = service.ports.filter(
    (port) => !badPorts.has(port) && reservationFor(port.port, fleet) !== undefined,
  );
  if (reserved.length > 0) {
    const [are, it] = reserved.length === 1 ? ['is', 'it'] : ['are', 'they'];
    degraded.push({
      reason: 'OverLimit',
      message: `${portsText(reserved)} ${are} reserved on the nodes now; what serves goes on where it is, and once given up ${it} cannot be had again: use another port`,
    });
  }
  const alone = service.ports.filter(
    (port) => !badPorts.has(port) && modes.get(port) === 'alone' && isFleetSharedPort(port, fleet),
  );
  if (alone.length > 0) {
    degraded.push({
      reason: 'OverLimit',
      message: `${portsText(alone)} ${alone.length === 1 ? 'is' : 'are'} shared by host names now; what serves goes on where it is, and once given up it can be had only with weir.dev/hosts`,
    });
  }
  return degraded;
}

/** What asks for the client's address and does not learn it; undefined: the PROXY protocol tells it. */
function sourceAddressMessage(
  service: ServiceObject,
  { proxyProtocol }: ServiceSettings,
  badPorts: PortRefusals,
): string | undefined {
  if (proxyProtocol === null) {
    return 'externalTrafficPolicy is Local, but connections reach the pods from the address of the proxy, not of the client; pods that understand it are told the address by annotation weir.dev/proxy-protocol, and externalTrafficPolicy: Cluster asks for no more than is done';
  }
  const untold = service.ports.filter((port) => port.protocol === 'UDP' && !badPorts.has(port));
  if (untold.length === 0) return undefined;
  return `externalTrafficPolicy is Local, but datagrams to ${portsText(untold)} reach the pods from the address of the proxy, not of the client, and annotation weir.dev/proxy-protocol tells it for TCP only; externalTrafficPolicy: Cluster asks for no more than is done`;
}
