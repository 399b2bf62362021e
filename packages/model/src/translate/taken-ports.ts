import type { ListenerEntry } from '../table/entry.ts';

/** Who has which (node, address, protocol, port), while tables are being decided. */
export class TakenPorts {
  /** By listener id. */
  readonly #holders = new Map<string, string>();
  /** By UID. */
  readonly #listeners = new Map<string, readonly ListenerEntry[]>();

  /** UID of the Service that has it. */
  holderOf(id: string): string | undefined {
    return this.#holders.get(id);
  }

  listenersOf(uid: string): readonly ListenerEntry[] {
    return this.#listeners.get(uid) ?? NONE;
  }

  /** From now on the Service has these listeners, and no others. */
  give(uid: string, listeners: readonly ListenerEntry[]): void {
    for (const { id } of this.listenersOf(uid)) if (this.#holders.get(id) === uid) this.#holders.delete(id);
    for (const { id } of listeners) this.#holders.set(id, uid);
    if (listeners.length === 0) this.#listeners.delete(uid);
    else this.#listeners.set(uid, listeners);
  }
}

const NONE: readonly ListenerEntry[] = [];
