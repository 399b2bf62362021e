import type { FleetSettings } from '../fleet-settings.ts';
import { countOf, joinItems, joinSentences, portsText } from '../message-text.ts';
import type { DegradedReason } from '../reason.ts';
import { reservationFor } from '../reserved-ports.ts';
import { keySecretsOf, type ServiceSettings } from '../settings/service-settings.ts';
import type { ServiceObject, ServicePort } from '../snapshot.ts';
import {
  type CertificateEntry,
  certificateId,
  type ErrorPagesEntry,
  type ListenerEntry,
  type PortEntry,
  type ServiceEntry,
  type StatusReason,
} from '../table/entry.ts';
import { dayOf } from '../usage/period.ts';
import type { ServiceAllocation } from './allocate/allocations.ts';
import type { Placement } from './allocate/placement.ts';
import type { NodeRequirements } from './allocate/pool-placement.ts';
import { inPortOrder, isPortAllowed, type PortRefusals, type Refusal } from './allocate/port-refusals.ts';
import { isFleetSharedPort, type PortModes } from './allocate/shared-ports.ts';
import type { SecretIndex } from './secret-index.ts';
import { policyText, type Tenant } from './tenancy.ts';

/** The result of a decision: the content of the Service's table entry, its certificates and its listeners. */
export interface ServiceResult {
  readonly service: ServiceObject;
  readonly tenant: string | null;
  readonly accepted: ServiceEntry['accepted'];
  readonly degraded: readonly StatusReason<DegradedReason>[];
  readonly settings: ServiceSettings | null;
  /** The certificates that clients and endpoints get; empty if the proxies do not terminate TLS for the Service. */
  readonly certificates: readonly CertificateEntry[];
  readonly errorPages: ErrorPagesEntry | null;
  readonly ports: readonly PortEntry[];
  readonly pool: string | null;
  readonly nodes: readonly string[];
  readonly listeners: readonly ListenerEntry[];
}

export interface ServiceResultContext {
  readonly fleet: FleetSettings;
  readonly secrets: SecretIndex;
  readonly allocation: ServiceAllocation | undefined;
}

/** Returns the result of a refused Service, which gets no listeners. */
export function refusedResult(
  service: ServiceObject,
  tenant: string | null,
  refusal: Refusal,
  portRefusals: PortRefusals = new Map(),
): ServiceResult {
  const ports = portEntries(service, portRefusals);
  return {
    service,
    tenant,
    accepted: refusal,
    degraded: [],
    settings: null,
    certificates: [],
    errorPages: null,
    ports,
    pool: null,
    nodes: [],
    listeners: [],
  };
}

export interface ServedInput extends ServedConfig {
  /** Why the Service keeps its last accepted settings or its present nodes; undefined if the Service gets what it requests. */
  readonly refusal: Refusal | undefined;
}

/** Returns the result of a Service that is served, completely or in part. */
export function servedResult(service: ServiceObject, input: ServedInput, context: ServiceResultContext): ServiceResult {
  const { fleet } = context;
  const { tenant, settings, placement, modes } = input;
  const portRefusals = inPortOrder(service.ports, new Map([...input.portRefusals, ...placement.conflicts]));
  const exclusivePorts = new Set(
    service.ports.filter((port) => modes.get(port) === 'exclusive' && isFleetSharedPort(port, fleet)),
  );
  const refusals = [...portRefusals.values()];
  const first = refusals[0];
  const served = servedCertificatesFor(service, settings, context);
  const accepted: ServiceEntry['accepted'] = (input.refusal && withCertificateExpiry(input.refusal, served)) ??
    (first && {
      reason: first.reason,
      message: `${joinSentences([...new Set(refusals.map(({ message }) => message))])}; the other ports are served`,
    }) ?? {
      reason: 'Accepted',
      message: `accepted for tenant "${tenant.name}"`,
    };
  return {
    service,
    tenant: tenant.name,
    accepted,
    degraded: degradedReasonsFor(service, input, fleet),
    settings,
    certificates: served.certificates,
    errorPages: input.errorPages.entry,
    ports: portEntries(service, portRefusals, exclusivePorts),
    pool: input.requirements.pool,
    nodes: placement.nodes,
    listeners: placement.listeners,
  };
}

/** Adds to a refusal that the last accepted settings stay in effect, so that the reader knows that clients are still served. */
export function withStillServedText({ reason, message }: Refusal): Refusal {
  return { reason, message: `${message}; meanwhile the last accepted settings stay in effect` };
}

/**
 * Returns the port entries of a Service. `exclusivePorts` are ports that the fleet shares now, but that the Service keeps exclusively
 * because it had them before.
 */
function portEntries(
  service: ServiceObject,
  portRefusals: PortRefusals,
  exclusivePorts: ReadonlySet<ServicePort> = new Set(),
): PortEntry[] {
  return service.ports.map((port) => ({
    name: port.name,
    port: port.port,
    protocol: port.protocol,
    error: portRefusals.get(port) ?? null,
    ...(exclusivePorts.has(port) && !portRefusals.has(port) && { alone: true as const }),
  }));
}

interface ServedCertificates {
  readonly certificates: readonly CertificateEntry[];
  /** The certificates from the last table, whose Secrets do not provide a valid certificate now. */
  readonly kept: readonly CertificateEntry[];
}

/**
 * Returns the certificates in the Secrets, even if another setting of the Service is refused. If a Secret cannot be used, returns its
 * certificate of the last table.
 */
function servedCertificatesFor(
  service: ServiceObject,
  { tls }: ServiceSettings,
  { secrets, allocation }: ServiceResultContext,
): ServedCertificates {
  if (tls === undefined) return { certificates: [], kept: [] };
  const kept: CertificateEntry[] = [];
  const certificates = keySecretsOf(tls).flatMap((secret) => {
    const credential = secrets.credentialFor(service, tls, secret);
    if (credential.kind === 'good') return [credential.certificate];
    const last = allocation?.certificates.find(({ id }) => id === certificateId(service.uid, secret.position));
    if (last === undefined) return [];
    kept.push(last);
    return [last];
  });
  return { certificates, kept };
}

/** Adds to a refusal when the first kept certificate expires, because no new certificate is used while the refusal lasts. */
function withCertificateExpiry(refusal: Refusal, { kept }: ServedCertificates): Refusal {
  if (kept.length === 0) return refusal;
  const { reason, message } = refusal;
  const notAfter = Math.min(...kept.map((certificate) => certificate.notAfter));
  return { reason, message: `${message}, with a certificate that expires on ${dayOf(notAfter)}` };
}

export interface ServedConfig {
  readonly tenant: Tenant;
  readonly placement: Placement;
  readonly portRefusals: PortRefusals;
  readonly requirements: NodeRequirements;
  readonly modes: PortModes;
  readonly settings: ServiceSettings;
  readonly secrets: SecretIndex;
  readonly errorPages: ServedErrorPages;
}

/** The error pages of a served Service, and why its ConfigMap does not provide the pages. */
export interface ServedErrorPages {
  readonly entry: ErrorPagesEntry | null;
  readonly message: string | undefined;
}

/** Returns the ways in which a served Service differs from what its tenant requests or the operator permits. */
export function degradedReasonsFor(
  service: ServiceObject,
  config: ServedConfig,
  fleet: FleetSettings,
): StatusReason<DegradedReason>[] {
  const { tenant, portRefusals, modes, settings, secrets, errorPages } = config;
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
  const sourceAddress =
    service.externalTrafficPolicy === 'Local' ? sourceAddressMessage(service, settings, portRefusals) : undefined;
  if (sourceAddress !== undefined) degraded.push({ reason: 'SourceAddressNotPreserved', message: sourceAddress });
  if (errorPages.message !== undefined) degraded.push({ reason: 'ErrorPagesNotUsed', message: errorPages.message });
  const fewerNodes = fewerNodesMessage(config);
  if (fewerNodes !== undefined) degraded.push({ reason: 'FewerNodes', message: fewerNodes });
  const tolerated = service.ports.filter((port) => !portRefusals.has(port) && !isPortAllowed(port, tenant));
  if (tolerated.length > 0) {
    const are = tolerated.length === 1 ? 'is' : 'are';
    degraded.push({
      reason: 'OverLimit',
      message: `${portsText(tolerated)} ${are} no longer allowed for tenant "${tenant.name}"; the Service keeps its present ports, but cannot get a port back after releasing it; ask the operator to allow ${tolerated.length === 1 ? 'the port' : 'the ports'} in ${policyText(tenant.policy)}`,
    });
  }
  const reserved = service.ports.filter(
    (port) => !portRefusals.has(port) && reservationFor(port.port, fleet) !== undefined,
  );
  if (reserved.length > 0) {
    const are = reserved.length === 1 ? 'is' : 'are';
    degraded.push({
      reason: 'OverLimit',
      message: `${portsText(reserved)} ${are} now reserved on the nodes; the Service keeps its present nodes, but cannot get a port back after releasing it; use another port`,
    });
  }
  const exclusive = service.ports.filter(
    (port) => !portRefusals.has(port) && modes.get(port) === 'exclusive' && isFleetSharedPort(port, fleet),
  );
  if (exclusive.length > 0) {
    degraded.push({
      reason: 'OverLimit',
      message: `${portsText(exclusive)} ${exclusive.length === 1 ? 'is' : 'are'} now shared by host name; the Service keeps its present nodes, but after releasing a port, it can get the port back only with annotation weir.dev/hosts`,
    });
  }
  return degraded;
}

/** Returns why a Service is served on fewer nodes than it requests; undefined if the Service has all of its nodes, or none. */
function fewerNodesMessage({ tenant, placement, requirements }: ServedConfig): string | undefined {
  const { requestedNodes, nodeCount, nodesText } = requirements;
  const served = placement.nodes.length;
  if (served === 0 || served >= requestedNodes) return undefined;
  const start = `served on ${served} of ${countOf(requestedNodes, 'requested node')}`;
  const policy = policyText(tenant.policy);
  if (served >= nodeCount) {
    return `${start}: tenant "${tenant.name}" may have at most ${countOf(nodeCount, 'node')} for each Service; request fewer with annotation weir.dev/nodes, or ask for a higher maxNodesPerService in ${policy}`;
  }
  if (placement.isLimited) {
    return `${start}: tenant "${tenant.name}" may have ${countOf(tenant.limits.ports ?? 0, 'listener port')}, and each port counts once for each node; use fewer ports, request fewer nodes with annotation weir.dev/nodes, or ask for a higher limit in ${policy}`;
  }
  return `${start}: no other node of ${nodesText} is schedulable and has free ports, an address of the Service's IP families, and a running proxy; ask the operator for more nodes, or request fewer with annotation weir.dev/nodes`;
}

/**
 * Returns a message if traffic reaches the pods without the client's address; undefined if the PROXY protocol carries the client's
 * address on every port.
 */
function sourceAddressMessage(
  service: ServiceObject,
  { proxyProtocol }: ServiceSettings,
  portRefusals: PortRefusals,
): string | undefined {
  if (proxyProtocol === null) {
    return 'externalTrafficPolicy is Local, but connections reach the pods from the address of the proxy, not of the client; if the pods understand the PROXY protocol, use annotation weir.dev/proxy-protocol, otherwise set externalTrafficPolicy: Cluster';
  }
  const udpPorts = service.ports.filter((port) => port.protocol === 'UDP' && !portRefusals.has(port));
  if (udpPorts.length === 0) return undefined;
  return `externalTrafficPolicy is Local, but datagrams to ${portsText(udpPorts)} reach the pods from the address of the proxy, not of the client, and annotation weir.dev/proxy-protocol works for TCP only; set externalTrafficPolicy: Cluster`;
}
