// Who has which (node, address, protocol, port), alone or together with others, and whose the hosts are on the shared ones,
// while tables are being decided.
import { type ListenerEntry, listenerId } from '../table/entry.ts';
import { claimKey } from './port-key.ts';

interface Taken {
  readonly listeners: readonly ListenerEntry[];
  /** That it has on those that are shared. */
  readonly hosts: readonly string[];
}

export class TakenPorts {
  /** By place (`placeOf`), the UID of the Service that has it alone. */
  readonly #holders = new Map<string, string>();
  /** By place, the UIDs of those who share it. */
  readonly #sharers = new Map<string, Set<string>>();
  /** By claim, the UIDs of those who have it, each with the names of its nodes. */
  readonly #claimants = new Map<string, Map<string, ReadonlySet<string>>>();
  /** By UID. */
  readonly #taken = new Map<string, Taken>();

  /** UID of the Service that has the place alone. */
  holderOf(place: string): string | undefined {
    return this.#holders.get(place);
  }

  /** UIDs of those who share the place. */
  sharersOf(place: string): ReadonlySet<string> {
    return this.#sharers.get(place) ?? NOBODY;
  }

  /** UIDs of those who have the claim (`claimKey`), each with the names of its nodes. In one pool it is one of them. */
  claimantsOf(claim: string): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#claimants.get(claim) ?? NO_CLAIMANTS;
  }

  listenersOf(uid: string): readonly ListenerEntry[] {
    return (this.#taken.get(uid) ?? NOTHING).listeners;
  }

  hostsOf(uid: string): readonly string[] {
    return (this.#taken.get(uid) ?? NOTHING).hosts;
  }

  /** From now on the Service has these listeners, with these hosts on the shared ones, and no others. */
  give(uid: string, listeners: readonly ListenerEntry[], hosts: readonly string[]): void {
    this.#takeAll(uid);
    if (listeners.length === 0) return;
    this.#taken.set(uid, { listeners, hosts });
    for (const listener of listeners) {
      const place = placeOf(listener);
      if (listener.shared === true) addTo(this.#sharers, place, uid);
      else this.#holders.set(place, uid);
    }
    for (const [claim, nodes] of claimsOf({ listeners, hosts })) {
      const claimants = this.#claimants.get(claim) ?? new Map<string, ReadonlySet<string>>();
      this.#claimants.set(claim, claimants.set(uid, nodes));
    }
  }

  #takeAll(uid: string): void {
    const before = this.#taken.get(uid);
    if (before === undefined) return;
    this.#taken.delete(uid);
    for (const listener of before.listeners) {
      const place = placeOf(listener);
      if (listener.shared === true) removeFrom(this.#sharers, place, uid);
      else if (this.#holders.get(place) === uid) this.#holders.delete(place);
    }
    for (const claim of claimsOf(before).keys()) removeFrom(this.#claimants, claim, uid);
  }
}

/** What tells places apart, of whoever has or shares them. */
export function placeOf(listener: ListenerEntry): string {
  return listener.shared === true ? listenerId(listener) : listener.id;
}

const NOTHING: Taken = { listeners: [], hosts: [] };
const NOBODY: ReadonlySet<string> = new Set();
const NO_CLAIMANTS: ReadonlyMap<string, ReadonlySet<string>> = new Map();

/** By claim, the names of the nodes. */
function claimsOf({ listeners, hosts }: Taken): Map<string, ReadonlySet<string>> {
  const shared = hosts.length === 0 ? [] : listeners.filter((listener) => listener.shared === true);
  const claims = new Map<string, ReadonlySet<string>>();
  for (const [port, ofPort] of Map.groupBy(shared, ({ port }) => port)) {
    const nodes = new Set(ofPort.map(({ node }) => node));
    for (const host of hosts) claims.set(claimKey({ port, protocol: 'TCP' }, host), nodes);
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
