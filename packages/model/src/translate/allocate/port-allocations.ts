// Holds the owners of bindings and hosts while the allocator decides. A binding is (node, address, protocol, port). Either one Service
// owns a binding exclusively, or several Services share the binding and are distinguished by host. In each node pool, a host on a shared
// port has one owner, or several owners of one namespace that are distinguished by path prefix.
import { type ListenerEntry, listenerId } from '../../table/entry.ts';
import { portHostKey } from './allocations.ts';
import { type HostClaim, hostClaimFor, type SharingSettings } from './host-claims.ts';

/**
 * Returns the text for the Service with this UID in a message. The text contains only what the tenant that reads the message may know.
 */
export type OwnerText = (uid: string) => string;

/** The text for a Service whose name the reader of the message may not know. */
export const ANOTHER_TENANT = 'another tenant';

/** Where a listener is. */
export type Binding = Pick<ListenerEntry, 'node' | 'address' | 'protocol' | 'port'>;

interface ServicePorts {
  readonly listeners: readonly ListenerEntry[];
  /** The hosts that the Service owns on its shared ports. */
  readonly hosts: readonly string[];
  /** What the Service claims of its hosts, by the number of the shared port. */
  readonly claims: ReadonlyMap<number, HostClaim>;
}

/** The namespace and the accepted settings of a Service. */
export interface HostOwner {
  readonly namespace: string;
  readonly settings: SharingSettings;
}

export class PortAllocations {
  /** The UID of the exclusive owner, by `bindingKey`. */
  readonly #ownersByBinding = new Map<string, string>();
  /** The UIDs of the Services that share a binding, by `bindingKey`. */
  readonly #sharersByBinding = new Map<string, Set<string>>();
  /** The owners of each host on a port, by `portHostKey`: a map from the UID of each owner to the names of its nodes. */
  readonly #ownersByHost = new Map<string, Map<string, ReadonlySet<string>>>();
  readonly #portsByUid = new Map<string, ServicePorts>();

  /** Returns the UID of the Service that owns the binding exclusively; undefined if there is none. */
  ownerOf(binding: string): string | undefined {
    return this.#ownersByBinding.get(binding);
  }

  /** Returns the UIDs of the Services that share the binding. */
  sharersOf(binding: string): ReadonlySet<string> {
    return this.#sharersByBinding.get(binding) ?? NO_SHARERS;
  }

  /** Returns the UIDs of the Services that own or share a binding. */
  ownersAt(binding: Binding): readonly string[] {
    const id = listenerId(binding);
    const owner = this.#ownersByBinding.get(id);
    return [...(owner === undefined ? [] : [owner]), ...this.sharersOf(id)];
  }

  /** Returns the owners of the host and port of a `portHostKey`: a map from the UID of each owner to the names of its nodes. */
  hostOwnersOf(portHost: string): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#ownersByHost.get(portHost) ?? NO_HOST_OWNERS;
  }

  listenersOf(uid: string): readonly ListenerEntry[] {
    return (this.#portsByUid.get(uid) ?? NO_PORTS).listeners;
  }

  hostsOf(uid: string): readonly string[] {
    return (this.#portsByUid.get(uid) ?? NO_PORTS).hosts;
  }

  /** Returns what a Service claims of its hosts, by the number of the shared port. */
  claimsOf(uid: string): ReadonlyMap<number, HostClaim> {
    return (this.#portsByUid.get(uid) ?? NO_PORTS).claims;
  }

  /**
   * Replaces the listeners of a Service, and the hosts that the Service owns on shared listeners. An empty list of listeners releases
   * everything. Without an owner, the Service owns no hosts.
   */
  allocate(uid: string, listeners: readonly ListenerEntry[], owner: HostOwner | undefined): void {
    this.#release(uid);
    if (listeners.length === 0) return;
    const hosts = owner?.settings.hosts ?? NO_PORTS.hosts;
    this.#portsByUid.set(uid, { listeners, hosts, claims: claimsFor(listeners, owner) });
    for (const listener of listeners) {
      const binding = bindingKey(listener);
      if (listener.shared === true) addTo(this.#sharersByBinding, binding, uid);
      else this.#ownersByBinding.set(binding, uid);
    }
    for (const [portHost, nodes] of nodesByPortHost({ listeners, hosts })) {
      const owners = this.#ownersByHost.get(portHost) ?? new Map<string, ReadonlySet<string>>();
      this.#ownersByHost.set(portHost, owners.set(uid, nodes));
    }
  }

  #release(uid: string): void {
    const before = this.#portsByUid.get(uid);
    if (before === undefined) return;
    this.#portsByUid.delete(uid);
    for (const listener of before.listeners) {
      const binding = bindingKey(listener);
      if (listener.shared === true) removeFrom(this.#sharersByBinding, binding, uid);
      else if (this.#ownersByBinding.get(binding) === uid) this.#ownersByBinding.delete(binding);
    }
    for (const portHost of nodesByPortHost(before).keys()) removeFrom(this.#ownersByHost, portHost, uid);
  }
}

/** Returns a key for the binding of a listener. All listeners of Services that share a binding have the same key. */
export function bindingKey(listener: ListenerEntry): string {
  return listener.shared === true ? listenerId(listener) : listener.id;
}

/** Returns the claims for the shared ports of a Service with hosts. */
function claimsFor(listeners: readonly ListenerEntry[], owner: HostOwner | undefined): ReadonlyMap<number, HostClaim> {
  if (owner === undefined || owner.settings.hosts.length === 0) return NO_PORTS.claims;
  const claims = new Map<number, HostClaim>();
  for (const { shared, port } of listeners) {
    if (shared === true && !claims.has(port)) claims.set(port, hostClaimFor({ port }, owner.namespace, owner.settings));
  }
  return claims;
}

const NO_PORTS: ServicePorts = { listeners: [], hosts: [], claims: new Map() };
const NO_SHARERS: ReadonlySet<string> = new Set();
const NO_HOST_OWNERS: ReadonlyMap<string, ReadonlySet<string>> = new Map();

/** Returns the names of the nodes on which a Service has each host, by `portHostKey`. */
function nodesByPortHost({
  listeners,
  hosts,
}: Pick<ServicePorts, 'listeners' | 'hosts'>): Map<string, ReadonlySet<string>> {
  const shared = hosts.length === 0 ? [] : listeners.filter((listener) => listener.shared === true);
  const result = new Map<string, ReadonlySet<string>>();
  for (const [port, listenersOfPort] of Map.groupBy(shared, ({ port }) => port)) {
    const nodes = new Set(listenersOfPort.map(({ node }) => node));
    for (const host of hosts) result.set(portHostKey({ port, protocol: 'TCP' }, host), nodes);
  }
  return result;
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
