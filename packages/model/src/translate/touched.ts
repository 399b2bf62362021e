import type { ListenerEntry } from '../table/entry.ts';
import { portHostKey, portKey, portShareKey } from './port-key.ts';

/** What was given up or taken: whoever waits for some of it has to be asked again. */
export class ChangedResources {
  /** By `portKey`, `shareKey` and `claimKey`. */
  readonly #portKeys = new Set<string>();
  readonly #tenants = new Set<string>();

  get portKeys(): ReadonlySet<string> {
    return this.#portKeys;
  }

  get tenants(): ReadonlySet<string> {
    return this.#tenants;
  }

  /** `hosts`: those on shared ones. */
  addListeners(listeners: readonly ListenerEntry[], hosts: readonly string[]): void {
    const shared = new Map<string, ListenerEntry>();
    for (const listener of listeners) {
      if (listener.shared === true) shared.set(portShareKey(listener), listener);
      else this.#portKeys.add(portKey(listener));
    }
    for (const [key, listener] of shared) {
      this.#portKeys.add(key);
      for (const host of hosts) this.#portKeys.add(portHostKey(listener, host));
    }
  }

  addTenant(tenant: string | null | undefined): void {
    if (tenant !== undefined && tenant !== null) this.#tenants.add(tenant);
  }

  addAll(other: ChangedResources): void {
    for (const port of other.#portKeys) this.#portKeys.add(port);
    for (const tenant of other.#tenants) this.#tenants.add(tenant);
  }
}
