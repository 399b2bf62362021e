import type { Cutoff, ServiceEntry } from '@weir/model/data-plane';
import { rowOf, UNROUTED_SLOT } from '../counters/columns.ts';
import { ServiceGroup } from './service-group.ts';
import type { Severing } from './severing.ts';

interface Held {
  readonly group: ServiceGroup;
  /** Listeners of the Service; at 0 the group lives on as long as its connections do: a Suspension must find those, too. */
  listeners: number;
}

/** The groups of all Services that have a listener or a connection here. */
export class ServiceGroups {
  readonly #severing: Severing;
  readonly #slabs: SharedArrayBuffer[];
  readonly #slots = new Map<string, number>();
  readonly #held = new Map<string, Held>();
  readonly #leaving = new Set<string>();
  #cutoffs: readonly Cutoff[] = [];
  #judgedAt = 0;

  constructor(slabs: readonly SharedArrayBuffer[], severing: Severing) {
    this.#slabs = [...slabs];
    this.#severing = severing;
  }

  grow(slab: SharedArrayBuffer): void {
    this.#slabs.push(slab);
  }

  /** `UNROUTED_SLOT`: the Service is gone, and only what is open is counted where it was. */
  assign(uid: string, slot: number): void {
    if (slot === UNROUTED_SLOT) {
      this.#slots.delete(uid);
      return;
    }
    this.#slots.set(uid, slot);
    const held = this.#held.get(uid);
    if (held !== undefined) held.group.row = this.rowFor(uid);
  }

  /** For one listener of the Service; `leave` when it goes. */
  join(service: ServiceEntry): ServiceGroup {
    const held = this.#held.get(service.uid) ?? this.#create(service);
    held.listeners += 1;
    this.#leaving.delete(service.uid);
    this.rename(held.group, service);
    return held.group;
  }

  /** The Service may be another one now in the eyes of a Suspension. */
  rename(group: ServiceGroup, service: ServiceEntry): void {
    group.service = service;
    this.#judge(group);
  }

  leave(group: ServiceGroup): void {
    const { uid } = group.service;
    const held = this.#held.get(uid);
    if (held === undefined) return;
    held.listeners -= 1;
    if (held.listeners > 0) return;
    if (group.members.size > 0) this.#leaving.add(uid);
    else this.#held.delete(uid);
  }

  /** Forgets the groups that nothing belongs to any more; their slots stay: a Service without listeners may get one. */
  sweep(): void {
    for (const uid of this.#leaving) {
      if ((this.#held.get(uid)?.group.members.size ?? 0) > 0) continue;
      this.#leaving.delete(uid);
      this.#held.delete(uid);
    }
  }

  cutOff(cutoffs: readonly Cutoff[], now: number): void {
    this.#cutoffs = cutoffs;
    this.#judgedAt = now;
    for (const { group } of this.#held.values()) this.#judge(group);
  }

  *all(): Iterable<ServiceGroup> {
    for (const { group } of this.#held.values()) yield group;
  }

  rowFor(uid: string | undefined): Float64Array {
    const slot = uid === undefined ? undefined : this.#slots.get(uid);
    return rowOf(this.#slabs, slot ?? UNROUTED_SLOT);
  }

  #create(service: ServiceEntry): Held {
    const held = { group: new ServiceGroup(service, this.rowFor(service.uid)), listeners: 0 };
    this.#held.set(service.uid, held);
    return held;
  }

  #judge(group: ServiceGroup): void {
    if (group.judge(this.#cutoffs, this.#judgedAt)) this.#severing.sever(group.members, 'cut-off');
  }
}
