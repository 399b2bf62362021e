import { type EndpointStats, endpointKey } from '@weir/model/data-plane';
import type { Session } from '../relay/session.ts';
import { SessionQueue, type SessionTerminator } from '../relay/session-terminator.ts';
import type { DrainingEndpoint } from './health/draining-endpoints.ts';

/**
 * The delay before sessions are notified that their endpoint is unavailable. Table changes come in bursts, so that
 * after the delay one pass over a Service's sessions covers many changes.
 */
const NOTIFY_DELAY_MS = 100;

interface DrainDeadline {
  /** The UID of the endpoint's Service. */
  readonly service: string;
  readonly sessions: Iterable<Session>;
  /** The end of the drain timeout, in ticks. */
  readonly dueAt: number;
}

/**
 * When the drain timeout is over, ends the sessions of endpoints that were removed or fail their checks. Notifies these
 * sessions earlier, `NOTIFY_DELAY_MS` after the drain starts: a session that is still connecting tries another
 * endpoint, because a deleted Pod does not answer.
 */
export class EndpointDrainer {
  readonly #terminator: SessionTerminator;
  readonly #draining = new Map<EndpointStats, DrainDeadline>();
  /** Endpoints whose sessions have not been notified yet. */
  readonly #unnotified = new Set<EndpointStats>();
  readonly #notifications: SessionQueue;

  constructor(terminator: SessionTerminator, onThrow: (thrown: unknown) => void) {
    this.#terminator = terminator;
    this.#notifications = new SessionQueue(onThrow);
  }

  add(endpoint: EndpointStats, deadline: DrainDeadline): void {
    if (endpoint.activeConnections === 0) return;
    this.#draining.set(endpoint, deadline);
    if (this.#unnotified.size === 0) setTimeout(() => this.#notifySessions(), NOTIFY_DELAY_MS).unref();
    this.#unnotified.add(endpoint);
  }

  /** Stops draining an endpoint that has returned to the route or is healthy again. */
  remove(endpoint: EndpointStats): void {
    this.#draining.delete(endpoint);
  }

  get endpoints(): readonly DrainingEndpoint[] {
    return [...this.#draining].map(([{ endpoint }, { service }]) => [service, endpointKey(endpoint)]);
  }

  tick(now: number): void {
    const due: [EndpointStats, DrainDeadline][] = [];
    for (const [endpoint, deadline] of this.#draining) {
      if (endpoint.activeConnections > 0 && now < deadline.dueAt) continue;
      this.#draining.delete(endpoint);
      if (endpoint.activeConnections > 0) due.push([endpoint, deadline]);
    }
    for (const sessions of sessionsByService(due)) this.#terminator.terminate(sessions, 'drained');
  }

  #notifySessions(): void {
    const busy: [EndpointStats, DrainDeadline][] = [];
    for (const endpoint of this.#unnotified) {
      const deadline = this.#draining.get(endpoint);
      if (deadline !== undefined && endpoint.activeConnections > 0) busy.push([endpoint, deadline]);
    }
    this.#unnotified.clear();
    for (const sessions of sessionsByService(busy)) this.#notifications.add([...sessions], this.#notify);
  }

  /**
   * Checks the endpoint again, because the session may have moved to another endpoint while it waited for the
   * notification.
   */
  readonly #notify = (session: Session): void => {
    const { endpointStats } = session;
    if (endpointStats !== undefined && this.#draining.has(endpointStats)) session.onEndpointUnavailable();
  };
}

/**
 * Returns the sessions with the given endpoints, grouped by Service. The sessions of each Service are searched only
 * once, because a Service with thousands of sessions may lose hundreds of endpoints in one rollout.
 */
function sessionsByService(deadlines: readonly (readonly [EndpointStats, DrainDeadline])[]): Iterable<Session>[] {
  const endpointsBySessions = new Map<Iterable<Session>, Set<EndpointStats>>();
  for (const [endpoint, { sessions }] of deadlines) {
    const endpoints = endpointsBySessions.get(sessions);
    if (endpoints === undefined) endpointsBySessions.set(sessions, new Set([endpoint]));
    else endpoints.add(endpoint);
  }
  return [...endpointsBySessions].map(([sessions, endpoints]) => sessionsTo(endpoints, sessions));
}

/** Returns the sessions and the requests of sessions that go to the endpoints. */
function* sessionsTo(endpoints: ReadonlySet<EndpointStats>, sessions: Iterable<Session>): Iterable<Session> {
  for (const session of sessions) {
    if (session.endpointStats !== undefined && endpoints.has(session.endpointStats)) yield session;
    if (session.requests !== undefined) yield* sessionsTo(endpoints, session.requests);
  }
}
