import type { DegradedReason } from '../reason.ts';
import { reservationFor } from '../reserved-ports.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { FleetSettings, ServiceObject } from '../snapshot.ts';
import type { StatusReason } from '../table/entry.ts';
import type { Placement } from './placement.ts';
import type { NodeRequirements } from './pool.ts';
import { isPortAllowed, type PortRefusals } from './port-refusals.ts';
import type { SecretIndex } from './secret-book.ts';
import { isFleetSharedPort, type PortModes } from './shared-ports.ts';
import { policyText, type Tenant } from './tenancy.ts';
import { countOf, joinItems, portsText } from './text.ts';

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
