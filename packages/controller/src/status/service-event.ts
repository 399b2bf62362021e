import { createHash } from 'node:crypto';
import { type Condition, type ServiceView, truncateMessage } from '@weir/model';
import { CONDITION_PREFIX, type ObservedService } from './service-facts.ts';

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
