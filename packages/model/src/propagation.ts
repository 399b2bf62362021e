// How long a change takes from the API until a proxy serves by it: the controller says since when, each proxy how long.

/** Upper bounds of the histogram, in seconds. */
export const PROPAGATION_BUCKETS_SECONDS: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.06, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60,
];

/** An older trigger is not that of this change: somebody has restored or copied the object. */
const MAX_TRIGGER_AGE_MS = 600_000;

export interface ObservedChange {
  /** When the object was heard of, milliseconds since the epoch. */
  readonly observedAt: number;
  /** When, as the object says itself, it was caused to change; undefined: it does not say. */
  readonly triggeredAt: number | undefined;
  /** What the same object said the last time that it said something. */
  readonly previousTriggeredAt: number | undefined;
  /** When it was not yet so: the object was read and said something else, or it was made; undefined: not known. */
  readonly notBefore?: number | undefined;
}

/**
 * Since when the world has been as an object says now, milliseconds since the epoch: its trigger if that is news, at most 10
 * minutes old and not in the future; else when it was heard of. Whoever writes the object writes the trigger, too, so it counts no
 * further back than what we know ourselves: all that one object claims is never more than the time that has passed.
 */
export function changedAtFor({ observedAt, triggeredAt, previousTriggeredAt, notBefore }: ObservedChange): number {
  if (triggeredAt === undefined || triggeredAt <= (previousTriggeredAt ?? Number.NEGATIVE_INFINITY)) return observedAt;
  if (observedAt - triggeredAt > MAX_TRIGGER_AGE_MS) return observedAt;
  return Math.min(observedAt, Math.max(triggeredAt, notBefore ?? Number.NEGATIVE_INFINITY));
}

/** The earlier of two times, of which either may be unknown. */
export function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

/** From `changedAt` to `now`, both milliseconds since the epoch, in seconds: 0 where the clocks of two hosts say less. */
export function propagationSeconds(changedAt: number, now: number): number {
  return Math.max(0, now - changedAt) / 1_000;
}
