import { ANNOTATION_PREFIX } from '../settings/annotations.ts';
import type { FleetSettings, ServiceObject, Snapshot } from '../snapshot.ts';
import { listenerId, type NodeEntry } from '../table/entry.ts';
import type { Held } from './held.ts';
import { bindAddressesFor } from './nodes.ts';

/** Whether Weir takes this Service: its type, its class, and that it does not ask to be left alone. */
export function isOwned(service: ServiceObject, settings: FleetSettings): boolean {
  if (service.type !== 'LoadBalancer' || service.deleting) return false;
  if (service.annotations[`${ANNOTATION_PREFIX}ignore`] === 'true') return false;
  if (service.loadBalancerClass === null) return settings.classless;
  return service.loadBalancerClass === settings.loadBalancerClass;
}

/**
 * The Services that Weir takes, in the order in which they are served: those that hold ports, those whose address was
 * published (all else may be lost), those that were taken and wait for a node, then the oldest. What one `kubectl apply` makes
 * is all of one second, and a directory knows no time: then by namespace and name, which people see, unlike UIDs.
 */
export function ownedServicesFor(snapshot: Snapshot, held: Held): readonly ServiceObject[] {
  const holders = new Set(held.ports.values());
  const rank = ({ uid, publishedIPs }: ServiceObject): number => {
    if (holders.has(uid)) return 0;
    if (publishedIPs.length > 0) return 1;
    return held.services.has(uid) ? 2 : 3;
  };
  const age = (service: ServiceObject): number => service.createdAt ?? Number.MAX_SAFE_INTEGER;
  return snapshot.services
    .filter((service) => isOwned(service, snapshot.settings))
    .sort((a, b) => rank(a) - rank(b) || age(a) - age(b) || byName(a, b));
}

function byName(a: ServiceObject, b: ServiceObject): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

/** By listener id: who holds it still, of Services and ports and nodes that still exist. */
export function heldPortsFor(
  services: readonly ServiceObject[],
  nodes: readonly NodeEntry[],
  held: Held,
): Map<string, string> {
  const taken = new Map<string, string>();
  for (const service of services) {
    for (const node of nodes) {
      for (const address of bindAddressesFor(node, service)) {
        for (const { port, protocol } of service.ports) {
          if (protocol !== 'TCP' && protocol !== 'UDP') continue;
          const id = listenerId({ node: node.name, address, port, protocol });
          if (held.ports.get(id) === service.uid) taken.set(id, service.uid);
        }
      }
    }
  }
  return taken;
}
