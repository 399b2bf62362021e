// Who has which (node, address, protocol, port), alone or together with others, and whose the hosts are on the shared ones,
// while tables are being decided.
import { type ListenerEntry, listenerId } from '../../table/entry.ts';
import { portHostKey } from './port-key.ts';

interface ServicePorts {
  readonly listeners: readonly ListenerEntry[];
  /** That it has on those that are shared. */
  readonly hosts: readonly string[];
}

export class PortAllocations {
  /** By place (`placeOf`), the UID of the Service that has it alone. */
  readonly #ownersByBinding = new Map<string, string>();
  /** By place, the UIDs of those who share it. */
  readonly #sharersByBinding = new Map<string, Set<string>>();
  /** By claim, the UIDs of those who have it, each with the names of its nodes. */
  readonly #ownersByHost = new Map<string, Map<string, ReadonlySet<string>>>();
  /** By UID. */
  readonly #portsByService = new Map<string, ServicePorts>();

  /** UID of the Service that has the place alone. */
  ownerOf(place: string): string | undefined {
    return this.#ownersByBinding.get(place);
  }

  /** UIDs of those who share the place. */
  sharersOf(place: string): ReadonlySet<string> {
    return this.#sharersByBinding.get(place) ?? NO_SHARERS;
  }

  /** UIDs of those who have the claim (`claimKey`), each with the names of its nodes. In one pool it is one of them. */
  hostOwnersOf(claim: string): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#ownersByHost.get(claim) ?? NO_HOST_OWNERS;
  }

  listenersOf(uid: string): readonly ListenerEntry[] {
    return (this.#portsByService.get(uid) ?? NO_PORTS).listeners;
  }

  hostsOf(uid: string): readonly string[] {
    return (this.#portsByService.get(uid) ?? NO_PORTS).hosts;
  }

  /** From now on the Service has these listeners, with these hosts on the shared ones, and no others. */
  allocate(uid: string, listeners: readonly ListenerEntry[], hosts: readonly string[]): void {
    this.#release(uid);
    if (listeners.length === 0) return;
    this.#portsByService.set(uid, { listeners, hosts });
    for (const listener of listeners) {
      const place = bindingKey(listener);
      if (listener.shared === true) addTo(this.#sharersByBinding, place, uid);
      else this.#ownersByBinding.set(place, uid);
    }
    for (const [claim, nodes] of hostNodesOf({ listeners, hosts })) {
      const claimants = this.#ownersByHost.get(claim) ?? new Map<string, ReadonlySet<string>>();
      this.#ownersByHost.set(claim, claimants.set(uid, nodes));
    }
  }

  #release(uid: string): void {
    const before = this.#portsByService.get(uid);
    if (before === undefined) return;
    this.#portsByService.delete(uid);
    for (const listener of before.listeners) {
      const place = bindingKey(listener);
      if (listener.shared === true) removeFrom(this.#sharersByBinding, place, uid);
      else if (this.#ownersByBinding.get(place) === uid) this.#ownersByBinding.delete(place);
    }
    for (const claim of hostNodesOf(before).keys()) removeFrom(this.#ownersByHost, claim, uid);
  }
}

/** What tells places apart, of whoever has or shares them. */
export function bindingKey(listener: ListenerEntry): string {
  return listener.shared === true ? listenerId(listener) : listener.id;
}

const NO_PORTS: ServicePorts = { listeners: [], hosts: [] };
const NO_SHARERS: ReadonlySet<string> = new Set();
const NO_HOST_OWNERS: ReadonlyMap<string, ReadonlySet<string>> = new Map();

/** By claim, the names of the nodes. */
function hostNodesOf({ listeners, hosts }: ServicePorts): Map<string, ReadonlySet<string>> {
  const shared = hosts.length === 0 ? [] : listeners.filter((listener) => listener.shared === true);
  const claims = new Map<string, ReadonlySet<string>>();
  for (const [port, ofPort] of Map.groupBy(shared, ({ port }) => port)) {
    const nodes = new Set(ofPort.map(({ node }) => node));
    for (const host of hosts) claims.set(portHostKey({ port, protocol: 'TCP' }, host), nodes);
  }
  return claims;
}

function addTo(sets: Map<string, Set<string>>, key: string, item: string): void {
  const set = sets.get(key) ?? new Set();
  sets.set(key, set.add(item));
}

function removeFrom(
  sets: Map<string, { readonly size: number; delete(item: string): boolean }>,
  key: string,
  item: string,
): void {
  const set = sets.get(key);
  if (set?.delete(item) === true && set.size === 0) sets.delete(key);
}
