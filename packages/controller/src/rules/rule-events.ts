import { type RuleEvent, ruleEventText, type Tenant, truncateMessage } from '@weir/model';
import type { Clock, Timer } from '@weir/runtime';
import { WEIR_API_VERSION } from '../kubernetes/kube-api.ts';
import {
  EVENT_RETRY_MS,
  type EventSubject,
  type EventToWrite,
  type EventWriter,
  eventNameFor,
} from '../status/event-writer.ts';
import type { SourceSnapshot } from '../watch/source.ts';

/** The begin or the end of a rule's action on a tenant. */
export interface RuleNotice {
  readonly event: RuleEvent;
  readonly tenant: Tenant;
}

/** Shows users what rules do. */
export interface RuleReporter {
  report(notices: readonly RuleNotice[], snapshot: SourceSnapshot): void;
}

/** The maximum number of namespaces of a tenant that get an Event about one notice. */
const MAX_NOTIFIED_NAMESPACES = 20;
/** The maximum number of notices that wait for the API server. Further notices are in the log only. */
const MAX_WAITING_NOTICES = 200;

/** Writes Events about rules to the TenantPolicy, and to the namespaces in which the tenant has Services. */
export class RuleEvents implements RuleReporter {
  readonly #events: Pick<EventWriter, 'write' | 'keepOnly'>;
  readonly #clock: Clock;
  readonly #retries = new Set<Timer>();
  #waiting = 0;
  #written: Promise<unknown> = Promise.resolve();

  constructor(events: Pick<EventWriter, 'write' | 'keepOnly'>, clock: Clock) {
    this.#events = events;
    this.#clock = clock;
  }

  report(notices: readonly RuleNotice[], snapshot: SourceSnapshot): void {
    if (notices.length > 0) this.#events.keepOnly(() => true);
    for (const notice of notices) {
      if (this.#waiting >= MAX_WAITING_NOTICES) return;
      this.#waiting += 1;
      const events = ruleEventsFor(notice, snapshot);
      this.#writeNext(events, events);
    }
  }

  /** Resolves once the Events of all notices so far are written or have failed. Failed Events are not retried any more. */
  async close(): Promise<void> {
    await this.#written;
    for (const retry of this.#retries) retry.cancel();
  }

  /** Writes the new Events of one notice, and those of its Events that have failed and whose retry is due. */
  #writeNext(events: readonly EventToWrite[], newEvents: readonly EventToWrite[]): void {
    this.#written = this.#written.then(async () => {
      const written = await this.#events.write({ newEvents, persistentEvents: [], currentEvents: () => events });
      if (written === 'retry-pending') this.#retryLater(events);
      else this.#waiting -= 1;
    });
  }

  #retryLater(events: readonly EventToWrite[]): void {
    const retry = this.#clock.setTimeout(() => {
      this.#retries.delete(retry);
      this.#writeNext(events, []);
    }, EVENT_RETRY_MS);
    this.#retries.add(retry);
  }
}

const REASONS = { Notify: 'RuleNotifies', Throttle: 'RuleThrottles', Suspend: 'RuleSuspends' } as const;

/** Returns the Events about one notice. */
export function ruleEventsFor(
  { event, tenant }: RuleNotice,
  { policies, namespaces, services }: Pick<SourceSnapshot, 'policies' | 'namespaces' | 'services'>,
): readonly EventToWrite[] {
  const isBegin = event.kind === 'begin';
  const reason = isBegin ? REASONS[event.record.action] : 'RuleEnded';
  const type = isBegin ? 'Warning' : 'Normal';
  const note = truncateMessage(ruleEventText(event, tenant));
  const eventFor = (namespace: string, regarding: EventSubject): EventToWrite => ({
    name: eventNameFor(regarding.uid, reason, note),
    namespace,
    regarding,
    type,
    reason,
    note,
  });
  const policy = policies.find(({ name }) => name === tenant.policy);
  const withServices = new Set(services.map(({ namespace }) => namespace));
  const notified = namespaces
    .filter(({ name }) => tenant.namespaces.includes(name) && withServices.has(name))
    .slice(0, MAX_NOTIFIED_NAMESPACES);
  return [
    // Events about objects without a namespace belong in the namespace "default".
    ...(policy === undefined
      ? []
      : [
          eventFor('default', {
            apiVersion: WEIR_API_VERSION,
            kind: 'TenantPolicy',
            name: policy.name,
            uid: policy.uid,
          }),
        ]),
    ...notified.map(({ name, uid }) =>
      eventFor(name, { apiVersion: 'v1', kind: 'Namespace', namespace: name, name, uid }),
    ),
  ];
}
