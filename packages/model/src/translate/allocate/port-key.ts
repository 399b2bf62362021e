import type { ListenerEntry } from '../../table/entry.ts';

interface NumberedPort {
  readonly port: number;
  readonly protocol: string;
}

/** Identifies a port of a Service and its listeners; TCP and UDP of one number have two keys. */
export function portKey({ port, protocol }: NumberedPort): string {
  return `${protocol}/${port}`;
}

/** Identifies a host on a shared port: in one pool it has one owner. */
export function portHostKey(port: NumberedPort, host: string): string {
  return `${portKey(port)}/${host}`;
}

/**
 * Identifies a shared port without regard to hosts: every sharer blocks a Service that wants the port exclusively. It is the key of
 * the empty host.
 */
export function portShareKey(port: NumberedPort): string {
  return portHostKey(port, '');
}

/**
 * Returns the keys of the resources that listeners occupy: `portKey` for an exclusive port, `portShareKey` and the `portHostKey` of
 * each host for a shared port.
 */
export function resourceKeysOf(listeners: readonly ListenerEntry[], hosts: readonly string[]): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const listener of listeners) {
    if (listener.shared !== true) keys.add(portKey(listener));
    else if (!keys.has(portShareKey(listener)))
      for (const host of ['', ...hosts]) keys.add(portHostKey(listener, host));
  }
  return keys;
}
