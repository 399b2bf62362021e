// The owners of bindings and hosts while the allocator decides. A binding is (node, address, protocol, port): one Service owns it
// exclusively, or several Services share it by host. A host on a shared port has one owner per pool.
import { type ListenerEntry, listenerId } from '../../table/entry.ts';
import { portHostKey } from './allocations.ts';

/** Returns the name of the Service with this UID for a message; it contains only what the tenant that reads the message may know. */
export type OwnerText = (uid: string) => string;

interface ServicePorts {
  readonly listeners: readonly ListenerEntry[];
  /** The hosts of the Service on its shared ports. */
  readonly hosts: readonly string[];
}

export class PortAllocations {
  /** The UID of the exclusive owner, by `bindingKey`. */
  readonly #ownersByBinding = new Map<string, string>();
  /** The UIDs of the sharers, by `bindingKey`. */
  readonly #sharersByBinding = new Map<string, Set<string>>();
  /** The UIDs of the owners, each with the names of its nodes, by `portHostKey`. */
  readonly #ownersByHost = new Map<string, Map<string, ReadonlySet<string>>>();
  readonly #portsByUid = new Map<string, ServicePorts>();

  /** The UID of the Service that owns the binding exclusively. */
  ownerOf(binding: string): string | undefined {
    return this.#ownersByBinding.get(binding);
  }

  /** The UIDs of the Services that share the binding. */
  sharersOf(binding: string): ReadonlySet<string> {
    return this.#sharersByBinding.get(binding) ?? NO_SHARERS;
  }

  /** The UIDs of the Services that own the host on a port (`portHostKey`), each with the names of its nodes. */
  hostOwnersOf(portHost: string): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#ownersByHost.get(portHost) ?? NO_HOST_OWNERS;
  }

  listenersOf(uid: string): readonly ListenerEntry[] {
    return (this.#portsByUid.get(uid) ?? NO_PORTS).listeners;
  }

  hostsOf(uid: string): readonly string[] {
    return (this.#portsByUid.get(uid) ?? NO_PORTS).hosts;
  }

  /** Replaces what the Service owns by these listeners, with these hosts on its shared ports. No listeners release everything. */
  allocate(uid: string, listeners: readonly ListenerEntry[], hosts: readonly string[]): void {
    this.#release(uid);
    if (listeners.length === 0) return;
    this.#portsByUid.set(uid, { listeners, hosts });
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

/** Identifies the binding of a listener, whether one Service owns the binding or several Services share it. */
export function bindingKey(listener: ListenerEntry): string {
  return listener.shared === true ? listenerId(listener) : listener.id;
}

const NO_PORTS: ServicePorts = { listeners: [], hosts: [] };
const NO_SHARERS: ReadonlySet<string> = new Set();
const NO_HOST_OWNERS: ReadonlyMap<string, ReadonlySet<string>> = new Map();

/** The names of the Service's nodes, by `portHostKey`. */
function nodesByPortHost({ listeners, hosts }: ServicePorts): Map<string, ReadonlySet<string>> {
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
