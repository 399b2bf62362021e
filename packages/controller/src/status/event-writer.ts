import { createHash } from 'node:crypto';
import { type Condition, type ServiceView, truncateMessage } from '@weir/model';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import { FIELD_MANAGER, type Json, type KubeApi, SERVER_SIDE_APPLY } from '../kubernetes/kube-api.ts';
import { KubeApiError, type KubeApiErrorCode } from '../kubernetes/kube-api-error.ts';
import { microTime } from '../leader/leader-election.ts';
import { WEIR_PREFIX } from '../parse/parse-object.ts';
import type { ObservedService } from './service-status.ts';

/** How often an Event is written again while its condition lasts. The API server deletes an Event after an hour. */
const EVENT_RENEWAL_MS = 30 * 60_000;
export const EVENT_RETRY_MS = 60_000;

/** Errors of the API server that a retry after a minute cannot resolve. */
const PERMANENT_ERRORS: ReadonlySet<string> = new Set<KubeApiErrorCode>([
  'FORBIDDEN',
  'UNAUTHORIZED',
  'NOT_FOUND',
  'REFUSED',
]);

/**
 * Writes Events of `events.k8s.io/v1`. A failed write is logged, delays no other write, and is retried after a minute. An Event about a
 * change is retried only once, and only if the Event is still current. Without the retry, `kubectl describe` would not show a lasting
 * condition for half an hour, and would never show a change.
 */
export class EventWriter {
  readonly #api: Pick<KubeApi, 'request'>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #instance: string;
  /** When each Event was last written or read, by name, in milliseconds of the monotonic clock. */
  readonly #writtenAtByName = new Map<string, number>();
  /** When the failed Events about changes are retried, by name, in milliseconds of the monotonic clock. */
  readonly #retryAtByName = new Map<string, number>();
  #isFailing = false;

  constructor(options: { api: Pick<KubeApi, 'request'>; clock: Clock; log: Logger; instance: string }) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#instance = options.instance;
  }

  /**
   * Writes the new Events, persistent Events that were last written at least half an hour ago, and failed Events that
   * are still current and whose retry is due. Returns `retry-pending` if a failed Event is to be retried later.
   */
  async write({ newEvents, persistentEvents, currentEvents }: EventsOfSubject): Promise<'written' | 'retry-pending'> {
    const isRenewalDue = ({ name }: EventToWrite): boolean =>
      this.#clock.monotonic() - (this.#writtenAtByName.get(name) ?? Number.NEGATIVE_INFINITY) >= EVENT_RENEWAL_MS;
    const names = new Set(newEvents.map(({ name }) => name));
    const renewals = persistentEvents.filter((event) => !names.has(event.name) && isRenewalDue(event));
    const retries =
      this.#retryAtByName.size === 0
        ? []
        : currentEvents().filter(({ name }) => !names.has(name) && this.#isRetryDue(name));
    for (const { name } of renewals) names.add(name);
    for (const event of newEvents)
      if ((await this.#writeOne(event, { isNew: true })) === 'retry')
        this.#retryAtByName.set(event.name, this.#clock.monotonic() + EVENT_RETRY_MS);
    for (const event of renewals) await this.#writeOne(event, { isNew: false });
    for (const event of retries) {
      this.#retryAtByName.delete(event.name);
      if (!names.has(event.name)) await this.#writeOne(event, { isNew: true });
    }
    return this.#retryAtByName.size > 0 && currentEvents().some(({ name }) => this.#retryAtByName.has(name))
      ? 'retry-pending'
      : 'written';
  }

  #isRetryDue(name: string): boolean {
    return this.#clock.monotonic() >= (this.#retryAtByName.get(name) ?? Number.POSITIVE_INFINITY);
  }

  /** Forgets the Events of Services that do not exist any more, and Events whose renewal is due. */
  keepOnly(exists: (uid: string) => boolean): void {
    const oldest = this.#clock.monotonic() - EVENT_RENEWAL_MS;
    for (const timesByName of [this.#writtenAtByName, this.#retryAtByName])
      for (const [name, at] of timesByName)
        if (at <= oldest || !exists(name.split('.')[1] ?? '')) timesByName.delete(name);
  }

  /** Writes one Event. Returns `retry` if the write failed but may succeed in a minute. */
  async #writeOne(
    event: EventToWrite,
    { isNew }: { readonly isNew: boolean },
  ): Promise<'written' | 'retry' | 'refused'> {
    this.#writtenAtByName.set(event.name, this.#clock.monotonic());
    try {
      const path = `/apis/events.k8s.io/v1/namespaces/${event.namespace}/events/${event.name}`;
      const before = await this.#read(path);
      // Another leader has renewed the Event less than `EVENT_RENEWAL_MS` ago.
      if (!isNew && before !== undefined && this.#clock.now() - lastObservedAt(before) < EVENT_RENEWAL_MS)
        return 'written';
      const query = { fieldManager: FIELD_MANAGER, force: 'true' };
      const body = this.#bodyFor(event, before);
      await this.#api.request({ method: 'PATCH', path, query, body, contentType: SERVER_SIDE_APPLY });
      this.#isFailing = false;
      this.#retryAtByName.delete(event.name);
      return 'written';
    } catch (error) {
      const isPermanent = error instanceof KubeApiError && PERMANENT_ERRORS.has(error.code);
      if (!isPermanent)
        this.#writtenAtByName.set(event.name, this.#clock.monotonic() - EVENT_RENEWAL_MS + EVENT_RETRY_MS);
      if (!this.#isFailing)
        this.#log.warn({ reason: errorMessage(error), event: event.name }, 'failed to write an Event');
      this.#isFailing = true;
      return isPermanent ? 'refused' : 'retry';
    }
  }

  async #read(path: string): Promise<StoredEvent | undefined> {
    try {
      return (await this.#api.request({ method: 'GET', path })) as unknown as StoredEvent;
    } catch (error) {
      if (error instanceof KubeApiError && error.code === 'NOT_FOUND') return undefined;
      throw error;
    }
  }

  /** Returns the body to apply. Only the series of an existing Event may change. */
  #bodyFor(event: EventToWrite, before: StoredEvent | undefined): Json {
    const now = microTime(this.#clock.now());
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: event.name, namespace: event.namespace },
      eventTime: before?.eventTime ?? now,
      reportingController: 'weir.dev/controller',
      reportingInstance: before?.reportingInstance ?? this.#instance,
      action: 'Serve',
      reason: event.reason,
      type: event.type,
      note: event.note,
      regarding: event.regarding,
      ...(before !== undefined && { series: { count: (before.series?.count ?? 1) + 1, lastObservedTime: now } }),
    };
  }
}

/** The Events of one Service, or about one notice of a rule. */
interface EventsOfSubject {
  readonly newEvents: readonly EventToWrite[];
  readonly persistentEvents: readonly EventToWrite[];
  /** Returns all Events that are current, whether they have been written or not. */
  readonly currentEvents: () => readonly EventToWrite[];
}

interface StoredEvent {
  readonly eventTime: string;
  readonly reportingInstance: string;
  readonly series?: { readonly count: number; readonly lastObservedTime: string };
}

function lastObservedAt({ eventTime, series }: StoredEvent): number {
  return Date.parse(series?.lastObservedTime ?? eventTime);
}

/** An Event to write. */
export interface EventToWrite {
  /** From `eventNameFor`, so that a second write renews the first Event. */
  readonly name: string;
  readonly namespace: string;
  readonly regarding: EventSubject;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent if the object belongs to no namespace. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
}

/** Returns the name of an Event. The note of an Event is immutable, so a new note needs a new Event with another name. */
export function eventNameFor(uid: string, reason: string, note: string): string {
  const noteHash = createHash('sha256').update(note).digest('hex').slice(0, 10);
  return `weir.${uid}.${reason.toLowerCase()}.${noteHash}`;
}

/** Reasons that usually last only for a moment, or that the Event of another condition explains. */
const REASONS_WITHOUT_EVENT = ['Accepted', 'NotAccepted', 'WaitingForProxy'];

/** Returns the Events for conditions that the status of the Service does not show yet. */
export function newEventsFor(view: ServiceView, observed: ObservedService): readonly EventToWrite[] {
  return view.conditions
    .filter((condition) => isReported(condition) && !isInStatus(condition, observed))
    .map((condition) => eventFor(view, condition));
}

/** Returns the Events for all conditions of a view, except for `REASONS_WITHOUT_EVENT` and unknown states. */
export function eventsFor(view: ServiceView): readonly EventToWrite[] {
  return view.conditions.filter(isReported).map((condition) => eventFor(view, condition));
}

/** How long a Service must be pending before it gets an Event that says why. */
const PENDING_EVENT_DELAY_MS = 30_000;

/**
 * Returns the Events to renew while their condition lasts: why the Service is refused, or why it is still pending. `pendingMs` says
 * how long the Service has been pending.
 */
export function persistentEventsFor(view: ServiceView, pendingMs: number): readonly EventToWrite[] {
  const isPendingLong = view.state === 'Pending' && pendingMs >= PENDING_EVENT_DELAY_MS;
  return view.conditions
    .filter(
      ({ type, status }) => (type === 'Accepted' && status === 'False') || (isPendingLong && type === 'Programmed'),
    )
    .map((condition) => eventFor(view, condition));
}

function isReported({ reason, status }: Condition): boolean {
  return !REASONS_WITHOUT_EVENT.includes(reason) && status !== 'Unknown';
}

/**
 * Whether the status already shows the condition. A new message alone is not a change if the condition is positive, for example after
 * another address was added.
 */
function isInStatus(condition: Condition, observed: ObservedService): boolean {
  const shown = observed.conditions.find((each) => each.type === `${WEIR_PREFIX}${condition.type}`);
  if (shown?.reason !== condition.reason || shown.status !== condition.status) return false;
  return isPositive(condition) || shown.message === condition.message;
}

function isPositive({ type, status }: Condition): boolean {
  return (type === 'Accepted' || type === 'Programmed') && status === 'True';
}

function eventFor(view: ServiceView, condition: Condition): EventToWrite {
  const { uid, namespace, name } = view;
  const { reason } = condition;
  const note = truncateMessage(condition.message);
  return {
    name: eventNameFor(uid, reason, note),
    namespace,
    regarding: { apiVersion: 'v1', kind: 'Service', namespace, name, uid },
    type: isPositive(condition) ? 'Normal' : 'Warning',
    reason,
    note,
  };
}
