import type { ServiceObject } from '../snapshot.ts';
import type { ListenerEntry } from '../table/entry.ts';
import { bindAddressesFor, type Nodes } from './nodes.ts';
import { portKey } from './port-key.ts';

/** Those of a port that the Service still has, on an address that it still binds. */
export function retainedListeners(
  listeners: readonly ListenerEntry[],
  service: ServiceObject,
  nodes: Nodes,
): ListenerEntry[] {
  const ports = new Set(service.ports.map(portKey));
  const bound = new Map<string, ReadonlySet<string>>();
  for (const name of new Set(listeners.map(({ node }) => node))) {
    const node = nodes.byName.get(name);
    bound.set(name, new Set(node === undefined ? [] : bindAddressesFor(node, service)));
  }
  return listeners.filter(
    (listener) => ports.has(portKey(listener)) && bound.get(listener.node)?.has(listener.address) === true,
  );
}

export function hasSameListeners(a: readonly ListenerEntry[], b: readonly ListenerEntry[]): boolean {
  return a.length === b.length && a.every(({ id }, index) => id === b[index]?.id);
}
