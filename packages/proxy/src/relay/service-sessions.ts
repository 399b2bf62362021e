import { type ServiceEntry, type Suspension, suspensionFor } from '@weir/model/data-plane';
import { counterRow, UNROUTED_SLOT } from '../metering/counters.ts';
import { type Session, type SessionCollection, SessionSet } from './session.ts';
import type { SessionTerminator } from './session-terminator.ts';

/** What is open of somebody, and where it is counted. */
export interface CountedSessions {
  readonly sessions: SessionCollection<Session>;
  /** Where new connections are counted. */
  readonly counters: Float64Array;
}

/** What is open of one Service, under the name by which a Suspension finds them. */
export class ServiceSessions implements CountedSessions {
  readonly sessions: SessionSet<Session> = new SessionSet();
  entry: ServiceEntry;
  counters: Float64Array;
  #isCutOff = false;

  constructor(service: ServiceEntry, row: Float64Array) {
    this.entry = service;
    this.counters = row;
  }

  get isSuspended(): boolean {
    return this.#isCutOff;
  }

  /** Whether it is cut off now; what is open is for the caller to sever. */
  updateSuspension(cutoffs: readonly Suspension[], now: number): boolean {
    this.#isCutOff = suspensionFor(cutoffs, this.entry, now) !== undefined;
    return this.#isCutOff;
  }
}

interface RegisteredService {
  readonly sessions: ServiceSessions;
  /** Listeners of the Service; at 0 the group lives on as long as its connections do: a Suspension must find those, too. */
  listeners: number;
}

/** The groups of all Services that have a listener or a connection here. */
export class ServiceSessionsRegistry {
  readonly #terminator: SessionTerminator;
  readonly #counterBlocks: SharedArrayBuffer[];
  readonly #slotByService = new Map<string, number>();
  readonly #byService = new Map<string, RegisteredService>();
  readonly #withoutListeners = new Set<string>();
  #suspensions: readonly Suspension[] = [];
  #suspensionsAppliedAt = 0;

  constructor(slabs: readonly SharedArrayBuffer[], severing: SessionTerminator) {
    this.#counterBlocks = [...slabs];
    this.#terminator = severing;
  }

  addCounterBlock(slab: SharedArrayBuffer): void {
    this.#counterBlocks.push(slab);
  }

  /** `UNROUTED_SLOT`: the Service is gone, and only what is open is counted where it was. */
  assignSlot(uid: string, slot: number): void {
    if (slot === UNROUTED_SLOT) {
      this.#slotByService.delete(uid);
      return;
    }
    this.#slotByService.set(uid, slot);
    const held = this.#byService.get(uid);
    if (held !== undefined) held.sessions.counters = this.countersFor(uid);
  }

  /** For one listener of the Service; `leave` when it goes. */
  addListener(service: ServiceEntry): ServiceSessions {
    const held = this.#byService.get(service.uid) ?? this.#create(service);
    held.listeners += 1;
    this.#withoutListeners.delete(service.uid);
    this.updateService(held.sessions, service);
    return held.sessions;
  }

  /** The Service may be another one now in the eyes of a Suspension. */
  updateService(group: ServiceSessions, service: ServiceEntry): void {
    group.entry = service;
    this.#updateSuspension(group);
  }

  removeListener(group: ServiceSessions): void {
    const { uid } = group.entry;
    const held = this.#byService.get(uid);
    if (held === undefined) return;
    held.listeners -= 1;
    if (held.listeners > 0) return;
    if (group.sessions.size > 0) this.#withoutListeners.add(uid);
    else this.#byService.delete(uid);
  }

  /** Forgets the groups that nothing belongs to any more; their slots stay: a Service without listeners may get one. */
  removeIdle(): void {
    for (const uid of this.#withoutListeners) {
      if ((this.#byService.get(uid)?.sessions.sessions.size ?? 0) > 0) continue;
      this.#withoutListeners.delete(uid);
      this.#byService.delete(uid);
    }
  }

  applySuspensions(cutoffs: readonly Suspension[], now: number): void {
    this.#suspensions = cutoffs;
    this.#suspensionsAppliedAt = now;
    for (const { sessions } of this.#byService.values()) this.#updateSuspension(sessions);
  }

  *all(): Iterable<ServiceSessions> {
    for (const { sessions } of this.#byService.values()) yield sessions;
  }

  countersFor(uid: string | undefined): Float64Array {
    const slot = uid === undefined ? undefined : this.#slotByService.get(uid);
    return counterRow(this.#counterBlocks, slot ?? UNROUTED_SLOT);
  }

  #create(service: ServiceEntry): RegisteredService {
    const held = { sessions: new ServiceSessions(service, this.countersFor(service.uid)), listeners: 0 };
    this.#byService.set(service.uid, held);
    return held;
  }

  #updateSuspension(group: ServiceSessions): void {
    if (group.updateSuspension(this.#suspensions, this.#suspensionsAppliedAt))
      this.#terminator.terminate(group.sessions, 'cut-off');
  }
}
