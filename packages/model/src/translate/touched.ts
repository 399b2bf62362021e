import type { ListenerEntry } from '../table/entry.ts';
import { portKey } from './port-key.ts';
import type { ServiceRecord } from './service-record.ts';

/** What was given up or taken: whoever waits for some of it has to be asked again. */
export class Touched {
  readonly #ports = new Set<string>();
  readonly #tenants = new Set<string>();

  get isNothing(): boolean {
    return this.#ports.size === 0 && this.#tenants.size === 0;
  }

  get tenants(): ReadonlySet<string> {
    return this.#tenants;
  }

  addListeners(listeners: readonly ListenerEntry[]): void {
    for (const listener of listeners) this.#ports.add(portKey(listener));
  }

  addTenant(tenant: string | null | undefined): void {
    if (tenant !== undefined && tenant !== null) this.#tenants.add(tenant);
  }

  addAll(other: Touched): void {
    for (const port of other.#ports) this.#ports.add(port);
    for (const tenant of other.#tenants) this.#tenants.add(tenant);
  }

  concerns({ service, decision }: ServiceRecord): boolean {
    const tenant = decision?.tenant ?? null;
    return (
      (tenant !== null && this.#tenants.has(tenant)) || service.ports.some((port) => this.#ports.has(portKey(port)))
    );
  }
}
