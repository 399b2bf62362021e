import { type EndpointStats, endpointKey } from '@weir/model/data-plane';
import type { Session } from '../relay/session.ts';
import type { SessionTerminator } from '../relay/session-terminator.ts';
import { BatchedAction } from '../relay/session-terminator.ts';
import type { DrainingEndpoint } from './health/draining-endpoints.ts';

/** Changes of the table come in bursts: what is open of a Service is gone through once for many of them. */
const NOTIFY_DELAY_MS = 100;

interface DrainDeadline {
  /** UID of its Service. */
  readonly service: string;
  readonly sessions: Iterable<Session>;
  readonly dueAt: number;
}

/**
 * Endpoints that have left, or fail their checks, while connections to them are open: these may go on for a while that the Service
 * gives them. Those that still try to reach one hear of it, since it may be gone for good: a Pod that was deleted answers nothing.
 */
export class EndpointDrainer {
  readonly #terminator: SessionTerminator;
  readonly #draining = new Map<EndpointStats, DrainDeadline>();
  /** Of whom nobody was told yet. */
  readonly #unnotified = new Set<EndpointStats>();
  readonly #notifications: BatchedAction<Session>;

  constructor(severing: SessionTerminator, onThrow: (thrown: unknown) => void) {
    this.#terminator = severing;
    // Before its turn comes a member may have gone on by itself: then it must not give up the endpoint that it tries now.
    this.#notifications = new BatchedAction(
      (member) => this.#isDraining(member.endpointStats) && member.onEndpointUnavailable(),
      onThrow,
    );
  }

  /** `members` are those of its Service; `dueAt` in ticks. */
  add(load: EndpointStats, departure: DrainDeadline): void {
    if (load.activeConnections === 0) return;
    this.#draining.set(load, departure);
    if (this.#unnotified.size === 0) setTimeout(() => this.#notifySessions(), NOTIFY_DELAY_MS).unref();
    this.#unnotified.add(load);
  }

  /** It is back among the endpoints, or works again. */
  remove(load: EndpointStats): void {
    this.#draining.delete(load);
  }

  get endpoints(): readonly DrainingEndpoint[] {
    return [...this.#draining].map(([{ endpoint }, { service }]) => [service, endpointKey(endpoint)]);
  }

  tick(now: number): void {
    const due: [EndpointStats, DrainDeadline][] = [];
    for (const [load, departure] of this.#draining) {
      if (load.activeConnections > 0 && now < departure.dueAt) continue;
      this.#draining.delete(load);
      if (load.activeConnections > 0) due.push([load, departure]);
    }
    for (const members of sessionsByService(due)) this.#terminator.terminate(members, 'drained');
  }

  #notifySessions(): void {
    const left: [EndpointStats, DrainDeadline][] = [];
    for (const load of this.#unnotified) {
      const departure = this.#draining.get(load);
      if (departure !== undefined && load.activeConnections > 0) left.push([load, departure]);
    }
    this.#unnotified.clear();
    for (const members of sessionsByService(left)) this.#notifications.add(members);
  }

  #isDraining(load: EndpointStats | undefined): boolean {
    return load !== undefined && this.#draining.has(load);
  }
}

/** Each Service is gone through once: a rollout replaces hundreds of endpoints, and as many thousands may be open. */
function sessionsByService(departures: readonly (readonly [EndpointStats, DrainDeadline])[]): Iterable<Session>[] {
  const loadsOf = new Map<Iterable<Session>, Set<EndpointStats>>();
  for (const [load, { sessions }] of departures) {
    const loads = loadsOf.get(sessions);
    if (loads === undefined) loadsOf.set(sessions, new Set([load]));
    else loads.add(load);
  }
  return [...loadsOf].map(([members, loads]) => sessionsTo(loads, members));
}

function* sessionsTo(loads: ReadonlySet<EndpointStats>, members: Iterable<Session>): Iterable<Session> {
  for (const member of members) if (member.endpointStats !== undefined && loads.has(member.endpointStats)) yield member;
}
