import type { ListenerEntry } from '../table/entry.ts';
import { claimKey, portKey, shareKey } from './port-key.ts';

/** What was given up or taken: whoever waits for some of it has to be asked again. */
export class Touched {
  /** By `portKey`, `shareKey` and `claimKey`. */
  readonly #ports = new Set<string>();
  readonly #tenants = new Set<string>();

  get ports(): ReadonlySet<string> {
    return this.#ports;
  }

  get tenants(): ReadonlySet<string> {
    return this.#tenants;
  }

  /** `hosts`: those on shared ones. */
  addListeners(listeners: readonly ListenerEntry[], hosts: readonly string[]): void {
    const shared = new Map<string, ListenerEntry>();
    for (const listener of listeners) {
      if (listener.shared === true) shared.set(shareKey(listener), listener);
      else this.#ports.add(portKey(listener));
    }
    for (const [key, listener] of shared) {
      this.#ports.add(key);
      for (const host of hosts) this.#ports.add(claimKey(listener, host));
    }
  }

  addTenant(tenant: string | null | undefined): void {
    if (tenant !== undefined && tenant !== null) this.#tenants.add(tenant);
  }

  addAll(other: Touched): void {
    for (const port of other.#ports) this.#ports.add(port);
    for (const tenant of other.#tenants) this.#tenants.add(tenant);
  }
}
