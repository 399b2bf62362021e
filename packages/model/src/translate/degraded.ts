import type { DegradedReason } from '../reason.ts';
import { reservationOf } from '../reserved-ports.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { FleetSettings, ServiceObject } from '../snapshot.ts';
import type { Verdict } from '../table/entry.ts';
import type { Placement } from './placement.ts';
import type { NodeWish } from './pool.ts';
import { isAllowed, type PortRefusals } from './port-refusals.ts';
import type { SecretBook } from './secret-book.ts';
import { isSharedByFleet, type PortModes } from './shared-ports.ts';
import { policyText, type Tenant } from './tenancy.ts';
import { counted, listed, portsText } from './text.ts';

export interface Given {
  readonly tenant: Tenant;
  readonly placement: Placement;
  readonly badPorts: PortRefusals;
  readonly wish: NodeWish;
  readonly modes: PortModes;
  readonly settings: ServiceSettings;
  readonly secrets: SecretBook;
}

/** What is served, and yet not as its tenant or the operator would have it. */
export function degradedFor(
  service: ServiceObject,
  { tenant, placement, badPorts, wish, modes, settings, secrets }: Given,
  fleet: FleetSettings,
): Verdict<DegradedReason>[] {
  const degraded: Verdict<DegradedReason>[] = [];
  const expiry = settings.tls && secrets.expiryText(service, settings.tls);
  if (expiry !== undefined) degraded.push({ reason: 'CertificateExpiring', message: expiry });
  const nodePorts = service.ports.flatMap(({ nodePort }) =>
    nodePort !== null && nodePort > 0 ? String(nodePort) : [],
  );
  if (nodePorts.length > 0) {
    degraded.push({
      reason: 'NodePortBypass',
      message: `node ports (${listed(nodePorts)}) are open on every node and bypass limits, accounting and cut-off; set spec.allocateLoadBalancerNodePorts to false and clear the nodePort fields`,
    });
  }
  const lost = service.externalTrafficPolicy === 'Local' ? addressLost(service, settings, badPorts) : undefined;
  if (lost !== undefined) degraded.push({ reason: 'SourceAddressNotPreserved', message: lost });
  if (placement.nodes.length > 0 && placement.nodes.length < wish.nodes) {
    degraded.push({
      reason: 'FewerNodes',
      message: `served on ${placement.nodes.length} of the ${counted(wish.nodes, 'node')} that are wanted: no other node of ${wish.where} has its ports free, an address of its IP families and a proxy that answers, and is not cordoned; ask the operator for more nodes, or wish for fewer by annotation weir.dev/nodes`,
    });
  }
  const tolerated = service.ports.filter((port) => !badPorts.has(port) && !isAllowed(port, tenant));
  if (tolerated.length > 0) {
    const are = tolerated.length === 1 ? 'is' : 'are';
    degraded.push({
      reason: 'OverLimit',
      message: `${portsText(tolerated)} ${are} no longer allowed for tenant "${tenant.name}"; what serves goes on, and once given up it cannot be had again: ask for it in ${policyText(tenant.policy)}`,
    });
  }
  const reserved = service.ports.filter((port) => !badPorts.has(port) && reservationOf(port.port, fleet) !== undefined);
  if (reserved.length > 0) {
    const [are, it] = reserved.length === 1 ? ['is', 'it'] : ['are', 'they'];
    degraded.push({
      reason: 'OverLimit',
      message: `${portsText(reserved)} ${are} reserved on the nodes now; what serves goes on where it is, and once given up ${it} cannot be had again: use another port`,
    });
  }
  const alone = service.ports.filter(
    (port) => !badPorts.has(port) && modes.get(port) === 'alone' && isSharedByFleet(port, fleet),
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
function addressLost(
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
