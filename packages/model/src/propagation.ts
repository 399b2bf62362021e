// Measures how long a change takes from the API server until a proxy has applied the change. The controller determines when the change
// began, and each proxy measures the time since then.

/** Upper bounds of the buckets of the histogram, in seconds. */
export const PROPAGATION_BUCKETS_SECONDS: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.06, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60,
];

/** The greatest age of a trigger time. An older trigger time does not belong to the observed change: the object was restored or copied. */
const MAX_TRIGGER_AGE_MS = 600_000;

export interface ObservedChange {
  /** When the controller received the object, milliseconds since the epoch. */
  readonly observedAt: number;
  /** The trigger time: when the object changed, as the object itself records. Undefined if the object records no time. */
  readonly triggeredAt: number | undefined;
  /** The trigger time that the object recorded before this change. */
  readonly previousTriggeredAt: number | undefined;
  /** A time at which the object did not exist or had its former content; undefined if no such time is known. */
  readonly notBefore?: number | undefined;
}

/**
 * Returns when a change happened, in milliseconds since the epoch. This is the object's trigger time if that time is new, at most 10
 * minutes old and not in the future; otherwise the time of observation. Tenants can write any trigger time into an object. The result is
 * therefore never before `notBefore`, so that the delays of one object never add up to more than the time that has passed.
 */
export function changedAtFor({ observedAt, triggeredAt, previousTriggeredAt, notBefore }: ObservedChange): number {
  if (triggeredAt === undefined || triggeredAt <= (previousTriggeredAt ?? Number.NEGATIVE_INFINITY)) return observedAt;
  if (observedAt - triggeredAt > MAX_TRIGGER_AGE_MS) return observedAt;
  return Math.min(observedAt, Math.max(triggeredAt, notBefore ?? Number.NEGATIVE_INFINITY));
}

/** Returns the earlier of two times; undefined stands for an unknown time. */
export function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

/**
 * Returns the seconds from `changedAt` to `now` (milliseconds since the epoch); 0 if `now` is earlier because the clocks of two hosts
 * differ.
 */
export function propagationSeconds(changedAt: number, now: number): number {
  return Math.max(0, now - changedAt) / 1_000;
}
