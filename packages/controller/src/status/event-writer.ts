import { createHash } from 'node:crypto';
import { type Condition, type ServiceView, truncateMessage } from '@weir/model';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import { FIELD_MANAGER, type Json, type KubeApi, SERVER_SIDE_APPLY } from '../kubernetes/kube-api.ts';
import { KubeApiError, type KubeApiErrorCode } from '../kubernetes/kube-api-error.ts';
import { microTime } from '../leader/leader-election.ts';
import { CONDITION_PREFIX, type ObservedService } from './service-status.ts';

/** An Event lives for an hour: what lasts is told again before it is gone. */
const EVENT_RENEWAL_MS = 30 * 60_000;
/** What an API server that is busy or away did not take. */
const EVENT_RETRY_MS = 60_000;

/** What would be refused in a minute, too. */
const PERMANENT_ERRORS: ReadonlySet<string> = new Set<KubeApiErrorCode>([
  'FORBIDDEN',
  'UNAUTHORIZED',
  'NOT_FOUND',
  'REFUSED',
]);

/**
 * Events of `events.k8s.io/v1`. They are a courtesy: what cannot be written is logged, never retried at once, and stops nothing. It is
 * made up for a minute later, news once, if they are true by then: what lasts `kubectl describe` would not show for half an hour, and
 * other news never.
 */
export class EventWriter {
  readonly #api: Pick<KubeApi, 'request'>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #instance: string;
  /** By name: when it was last told, or seen to be, on a clock that never jumps. */
  readonly #writtenAtByName = new Map<string, number>();
  /** By name: when news that were not taken are told once more. */
  readonly #retryAtByName = new Map<string, number>();
  #isRefused = false;

  constructor(options: { api: Pick<KubeApi, 'request'>; clock: Clock; log: Logger; instance: string }) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#instance = options.instance;
  }

  /**
   * Tells of a Service what is new, and what lasts when it was last told half an hour ago; of news that are owed those that are `still`
   * true. `owing`: some are to be told a minute after they were not taken.
   */
  async write({ newEvents, persistentEvents, currentEvents }: ServiceEvents): Promise<'told' | 'owing'> {
    const isOld = ({ name }: ServiceEvent): boolean =>
      this.#clock.monotonic() - (this.#writtenAtByName.get(name) ?? Number.NEGATIVE_INFINITY) >= EVENT_RENEWAL_MS;
    const names = new Set(newEvents.map(({ name }) => name));
    const lasting = persistentEvents.filter((event) => !names.has(event.name) && isOld(event));
    const owed =
      this.#retryAtByName.size === 0
        ? []
        : currentEvents().filter(({ name }) => !names.has(name) && this.#isRetryDue(name));
    for (const { name } of lasting) names.add(name);
    for (const event of newEvents)
      if ((await this.#writeOne(event, { isNews: true })) === 'missed')
        this.#retryAtByName.set(event.name, this.#clock.monotonic() + EVENT_RETRY_MS);
    for (const event of lasting) await this.#writeOne(event, { isNews: false });
    for (const event of owed) {
      this.#retryAtByName.delete(event.name);
      if (!names.has(event.name)) await this.#writeOne(event, { isNews: true });
    }
    return this.#retryAtByName.size > 0 && currentEvents().some(({ name }) => this.#retryAtByName.has(name))
      ? 'owing'
      : 'told';
  }

  #isRetryDue(name: string): boolean {
    return this.#clock.monotonic() >= (this.#retryAtByName.get(name) ?? Number.POSITIVE_INFINITY);
  }

  /** Forgets the Services that are gone, and what was told so long ago that it may be told again. */
  keepOnly(isThere: (uid: string) => boolean): void {
    const oldest = this.#clock.monotonic() - EVENT_RENEWAL_MS;
    for (const [name, at] of this.#writtenAtByName)
      if (at <= oldest || !isThere(name.split('.')[1] ?? '')) this.#writtenAtByName.delete(name);
    for (const [name, at] of this.#retryAtByName)
      if (at <= oldest || !isThere(name.split('.')[1] ?? '')) this.#retryAtByName.delete(name);
  }

  /** `missed`: it might be taken in a minute. */
  async #writeOne(
    event: ServiceEvent,
    { isNews }: { readonly isNews: boolean },
  ): Promise<'told' | 'missed' | 'refused'> {
    this.#writtenAtByName.set(event.name, this.#clock.monotonic());
    try {
      const path = `/apis/events.k8s.io/v1/namespaces/${event.namespace}/events/${event.name}`;
      const before = await this.#read(path);
      // Told by the leader before us, a while ago.
      if (!isNews && before !== undefined && this.#clock.now() - lastObservedAt(before) < EVENT_RENEWAL_MS)
        return 'told';
      const query = { fieldManager: FIELD_MANAGER, force: 'true' };
      const body = this.#bodyFor(event, before);
      await this.#api.request({ method: 'PATCH', path, query, body, contentType: SERVER_SIDE_APPLY });
      this.#isRefused = false;
      this.#retryAtByName.delete(event.name);
      return 'told';
    } catch (error) {
      const isLasting = error instanceof KubeApiError && PERMANENT_ERRORS.has(error.code);
      if (!isLasting)
        this.#writtenAtByName.set(event.name, this.#clock.monotonic() - EVENT_RENEWAL_MS + EVENT_RETRY_MS);
      if (!this.#isRefused)
        this.#log.warn({ reason: errorMessage(error), event: event.name }, 'an Event could not be written');
      this.#isRefused = true;
      return isLasting ? 'refused' : 'missed';
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

  /** Of one that exists only the series may change. */
  #bodyFor(event: ServiceEvent, before: StoredEvent | undefined): Json {
    const now = microTime(this.#clock.now());
    const { uid, name } = event.service;
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
      regarding: { apiVersion: 'v1', kind: 'Service', namespace: event.namespace, name, uid },
      ...(before !== undefined && { series: { count: (before.series?.count ?? 1) + 1, lastObservedTime: now } }),
    };
  }
}

/** Of one Service. */
interface ServiceEvents {
  readonly newEvents: readonly ServiceEvent[];
  readonly persistentEvents: readonly ServiceEvent[];
  /** All that would be news if nobody had been told. */
  readonly currentEvents: () => readonly ServiceEvent[];
}

interface StoredEvent {
  readonly eventTime: string;
  readonly reportingInstance: string;
  readonly series?: { readonly count: number; readonly lastObservedTime: string };
}

function lastObservedAt({ eventTime, series }: StoredEvent): number {
  return Date.parse(series?.lastObservedTime ?? eventTime);
}

/** What is told by an Event, because `kubectl describe` shows those and no conditions. */
export interface ServiceEvent {
  /** The same for the same news, so that telling it again renews one object. */
  readonly name: string;
  readonly namespace: string;
  readonly service: { readonly uid: string; readonly name: string };
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

/** Reasons that are only on the way to another. */
const TRANSIENT_REASONS = ['Accepted', 'WaitingForProxy'];

/** The news in a view: conditions that the Service does not show yet. */
export function newEventsFor(view: ServiceView, facts: ObservedService): readonly ServiceEvent[] {
  return view.conditions
    .filter((condition) => isReported(condition) && !isInStatus(condition, facts))
    .map((condition) => eventFor(view, condition));
}

/** All that is told of a view when it is new. */
export function eventsFor(view: ServiceView): readonly ServiceEvent[] {
  return view.conditions.filter(isReported).map((condition) => eventFor(view, condition));
}

/** So long a Service may be on the way to its address before somebody wonders why it is pending. */
const PENDING_EVENT_DELAY_MS = 30_000;

/** What is told again and again while it lasts: why a Service is refused, or has no address. `pendingMs`: for how long it has none. */
export function persistentEventsFor(view: ServiceView, pendingMs: number): readonly ServiceEvent[] {
  const isLong = view.state === 'Pending' && pendingMs >= PENDING_EVENT_DELAY_MS;
  return view.conditions
    .filter(({ type, status }) => (type === 'Accepted' && status === 'False') || (isLong && type === 'Programmed'))
    .map((condition) => eventFor(view, condition));
}

function isReported({ reason, status }: Condition): boolean {
  return !TRANSIENT_REASONS.includes(reason) && status !== 'Unknown';
}

/** Of what is well the message may change (another address): that is no news. */
function isInStatus(condition: Condition, facts: ObservedService): boolean {
  const shown = facts.conditions.find((each) => each.type === `${CONDITION_PREFIX}${condition.type}`);
  if (shown?.reason !== condition.reason || shown.status !== condition.status) return false;
  return isPositive(condition) || shown.message === condition.message;
}

function isPositive({ type, status }: Condition): boolean {
  return (type === 'Accepted' || type === 'Programmed') && status === 'True';
}

function eventFor(view: ServiceView, condition: Condition): ServiceEvent {
  const { uid, namespace, name } = view;
  const { reason } = condition;
  const note = truncateMessage(condition.message);
  // The note of an Event cannot be changed: other words are another Event.
  const words = createHash('sha256').update(note).digest('hex').slice(0, 10);
  return {
    name: `weir.${uid}.${reason.toLowerCase()}.${words}`,
    namespace,
    service: { uid, name },
    type: isPositive(condition) ? 'Normal' : 'Warning',
    reason,
    note,
  };
}
