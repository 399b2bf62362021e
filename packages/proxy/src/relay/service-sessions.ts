import {
  createRetryBudget,
  type RetryBudget,
  type ServiceEntry,
  type Suspension,
  suspensionFor,
} from '@weir/model/data-plane';
import { counterRow, UNROUTED_SLOT } from '../metering/counters.ts';
import { type Session, SessionSet } from './session.ts';
import type { SessionTerminator } from './session-terminator.ts';

/** A group of open sessions, such as the sessions of one Service, and the counters for new sessions of the group. */
export interface CountedSessions {
  readonly sessions: SessionSet<Session> | Set<Session>;
  readonly counters: Float64Array;
  /** The Service; absent while the Service of the sessions is not known. */
  readonly entry?: ServiceEntry;
}

/** The open sessions of one Service. `entry` determines which suspensions apply to the sessions. */
export class ServiceSessions implements CountedSessions {
  readonly sessions: SessionSet<Session> = new SessionSet();
  entry: ServiceEntry;
  counters: Float64Array;
  #retryBudget: RetryBudget | undefined;
  /** The text for HTTP clients. Undefined if the Service is not suspended. */
  #suspensionText: string | undefined;

  constructor(entry: ServiceEntry, counters: Float64Array) {
    this.entry = entry;
    this.counters = counters;
  }

  /** The budget of this worker for requests that are sent again. Created on first use, because TCP needs none. */
  get retryBudget(): RetryBudget {
    this.#retryBudget ??= createRetryBudget();
    return this.#retryBudget;
  }

  get isSuspended(): boolean {
    return this.#suspensionText !== undefined;
  }

  /** The message of the Suspension, which HTTP clients get with the status 403. Undefined if the Service is not suspended. */
  get suspensionText(): string | undefined {
    return this.#suspensionText;
  }

  /**
   * Recomputes and returns whether the Service is suspended. If the Service is suspended, the caller must terminate the
   * open sessions.
   */
  updateSuspension(suspensions: readonly Suspension[], now: number): boolean {
    const suspension = suspensionFor(suspensions, this.entry, now);
    this.#suspensionText = suspension && suspensionTextOf(suspension);
    return this.isSuspended;
  }
}

/** The maximum number of characters of a Suspension's message that HTTP clients get. */
const MAX_MESSAGE_CHARACTERS = 256;
const CONTROL_CHARACTERS = /\p{Cc}+/gu;

function suspensionTextOf({ message }: Suspension): string {
  // The cut may leave half of a surrogate pair.
  const start = message.slice(0, MAX_MESSAGE_CHARACTERS).replace(/[\ud800-\udbff]$/, '');
  const text = start.replace(CONTROL_CHARACTERS, ' ').trim();
  if (text === '') return 'This service is suspended.';
  return `This service is suspended: ${text}${start.length < message.length ? '…' : ''}`;
}

interface RegisteredService {
  readonly sessions: ServiceSessions;
  /**
   * The number of listeners of the Service. Without a listener, the Service stays registered while it has open
   * sessions, because a suspension must find these sessions.
   */
  listeners: number;
}

/** All Services that have a listener or an open session in this worker. */
export class ServiceSessionsRegistry {
  readonly #terminator: SessionTerminator;
  readonly #counterBlocks: SharedArrayBuffer[];
  readonly #slotByUid = new Map<string, number>();
  readonly #serviceByUid = new Map<string, RegisteredService>();
  readonly #uidsWithoutListeners = new Set<string>();
  #suspensions: readonly Suspension[] = [];
  #suspensionsAppliedAt = 0;

  constructor(counterBlocks: readonly SharedArrayBuffer[], terminator: SessionTerminator) {
    this.#counterBlocks = [...counterBlocks];
    this.#terminator = terminator;
  }

  addCounterBlock(block: SharedArrayBuffer): void {
    this.#counterBlocks.push(block);
  }

  /**
   * Sets the counter slot for new sessions of the Service. `UNROUTED_SLOT` means that the Service was deleted. Open
   * sessions keep their counters.
   */
  assignSlot(uid: string, slot: number): void {
    if (slot === UNROUTED_SLOT) {
      this.#slotByUid.delete(uid);
      return;
    }
    this.#slotByUid.set(uid, slot);
    const registered = this.#serviceByUid.get(uid);
    if (registered !== undefined) registered.sessions.counters = this.countersFor(uid);
  }

  /** Registers a listener of the Service. `removeListener` must be called when the listener closes. */
  addListener(entry: ServiceEntry): ServiceSessions {
    const registered = this.#serviceByUid.get(entry.uid) ?? this.#register(entry);
    registered.listeners += 1;
    this.#uidsWithoutListeners.delete(entry.uid);
    this.updateService(registered.sessions, entry);
    return registered.sessions;
  }

  /**
   * Replaces the entry of a Service. A changed entry, for example with a different tenant, may start or end a
   * suspension.
   */
  updateService(service: ServiceSessions, entry: ServiceEntry): void {
    service.entry = entry;
    this.#updateSuspension(service);
  }

  removeListener(service: ServiceSessions): void {
    const { uid } = service.entry;
    const registered = this.#serviceByUid.get(uid);
    if (registered === undefined) return;
    registered.listeners -= 1;
    if (registered.listeners > 0) return;
    if (service.sessions.size > 0) this.#uidsWithoutListeners.add(uid);
    else this.#serviceByUid.delete(uid);
  }

  /**
   * Removes Services that have neither listeners nor sessions. Keeps their counter slots, because a Service may get a
   * listener again.
   */
  removeIdle(): void {
    for (const uid of this.#uidsWithoutListeners) {
      if ((this.#serviceByUid.get(uid)?.sessions.sessions.size ?? 0) > 0) continue;
      this.#uidsWithoutListeners.delete(uid);
      this.#serviceByUid.delete(uid);
    }
  }

  applySuspensions(suspensions: readonly Suspension[], now: number): void {
    this.#suspensions = suspensions;
    this.#suspensionsAppliedAt = now;
    for (const { sessions } of this.#serviceByUid.values()) this.#updateSuspension(sessions);
  }

  *all(): Iterable<ServiceSessions> {
    for (const { sessions } of this.#serviceByUid.values()) yield sessions;
  }

  countersFor(uid: string | undefined): Float64Array {
    const slot = uid === undefined ? undefined : this.#slotByUid.get(uid);
    return counterRow(this.#counterBlocks, slot ?? UNROUTED_SLOT);
  }

  #register(entry: ServiceEntry): RegisteredService {
    const registered = { sessions: new ServiceSessions(entry, this.countersFor(entry.uid)), listeners: 0 };
    this.#serviceByUid.set(entry.uid, registered);
    return registered;
  }

  #updateSuspension(service: ServiceSessions): void {
    if (service.updateSuspension(this.#suspensions, this.#suspensionsAppliedAt))
      this.#terminator.terminate(service.sessions, 'cut-off');
  }
}
