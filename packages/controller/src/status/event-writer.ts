import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import { KubeApiError, type KubeApiErrorCode } from '../kubernetes/api-error.ts';
import { FIELD_MANAGER, type Json, type KubeApi, SERVER_SIDE_APPLY } from '../kubernetes/kube-api.ts';
import { microTime } from '../leader/election.ts';
import type { ServiceEvent } from './service-event.ts';

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
