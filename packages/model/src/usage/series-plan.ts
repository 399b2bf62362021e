// Decides which points of a series answer a question such as "the last 7 days in steps of an hour".
import { closestName } from '../closest-name.ts';
import { formatDuration, parseDuration } from '../duration.ts';
import { addCounters, type Counters, ZERO_COUNTERS } from './report.ts';
import { KEPT_POINTS, MINUTES_PER_POINT, type SeriesLength } from './series.ts';

const MINUTE_MS = 60_000;

export const USAGE_STEPS = ['1m', '5m', '15m', '1h', '6h', '1d'] as const;
export type UsageStep = (typeof USAGE_STEPS)[number];
export const DEFAULT_USAGE_STEP: UsageStep = '1h';
/** How long before now a series begins if the user does not say when. */
export const DEFAULT_USAGE_SINCE = '1d';

/** The steps of a series: for each step, the length and the number of the points that add up to it. */
const POINTS_BY_STEP: Readonly<Record<UsageStep, { readonly length: SeriesLength; readonly points: number }>> = {
  '1m': { length: 'minute', points: 1 },
  '5m': { length: 'minute', points: 5 },
  '15m': { length: 'minute', points: 15 },
  '1h': { length: 'hour', points: 1 },
  '6h': { length: 'hour', points: 6 },
  '1d': { length: 'day', points: 1 },
};

/** Returns the allowed step that the user probably meant, such as `1h` for `60m`. */
export function closestUsageStep(text: string): UsageStep | undefined {
  const duration = parseDuration(text);
  const same = duration === undefined ? undefined : USAGE_STEPS.find((step) => parseDuration(step) === duration);
  return same ?? USAGE_STEPS.find((step) => step === closestName(text, USAGE_STEPS));
}

export interface SeriesRequest {
  /** In milliseconds since the epoch, as `until`. */
  readonly since: number;
  readonly until: number;
  readonly step: UsageStep;
}

/** The points of an answer begin at multiples of the step since the epoch, UTC. All times are in whole minutes since the epoch. */
export interface SeriesPlan {
  readonly kind: 'plan';
  readonly length: SeriesLength;
  readonly stepMinutes: number;
  /** The start of the first point. */
  readonly from: number;
  /** The end of the last point. */
  readonly until: number;
}

export interface SeriesMistake {
  readonly kind: 'mistake';
  /** What is wrong, and how to fix it. */
  readonly message: string;
}

/** Plans the points that contain the time from `since` to `until`. `now` is in milliseconds since the epoch. */
export function planSeries({ since, until, step }: SeriesRequest, now: number): SeriesPlan | SeriesMistake {
  const end = Math.min(until, now);
  if (since >= end) return mistake('"since" must be in the past and before "until"; use an earlier time for "since"');
  if (now - since > keptMsOf(step)) {
    const longer = USAGE_STEPS.find((each) => now - since <= keptMsOf(each));
    const choice = longer === undefined ? '' : `step ${longer}, or `;
    const kept = formatDuration(keptMsOf(step));
    return mistake(`points for a step of ${step} are kept for ${kept}; use ${choice}a "since" of at most ${kept}`);
  }
  const { length, points } = POINTS_BY_STEP[step];
  const stepMinutes = points * MINUTES_PER_POINT[length];
  const stepMs = stepMinutes * MINUTE_MS;
  const from = Math.floor(since / stepMs) * stepMinutes;
  return { kind: 'plan', length, stepMinutes, from, until: Math.ceil(end / stepMs) * stepMinutes };
}

function keptMsOf(step: UsageStep): number {
  const { length } = POINTS_BY_STEP[step];
  return KEPT_POINTS[length] * MINUTES_PER_POINT[length] * MINUTE_MS;
}

function mistake(message: string): SeriesMistake {
  return { kind: 'mistake', message };
}

/** Returns how many points an answer has. */
export function pointCountOf({ from, until, stepMinutes }: SeriesPlan): number {
  return (until - from) / stepMinutes;
}

/**
 * Adds up points (`minute` is the start in whole minutes since the epoch) by the steps of a plan. Returns all steps, ascending. A step
 * without usage has zero counters.
 */
export function pointsByStep(
  plan: SeriesPlan,
  points: readonly { readonly minute: number; readonly counters: Counters }[],
): { readonly minute: number; readonly counters: Counters }[] {
  const sums = new Map<number, Counters>();
  for (const { minute, counters } of points) {
    const start = minute - (minute % plan.stepMinutes);
    sums.set(start, addCounters(sums.get(start) ?? ZERO_COUNTERS, counters));
  }
  return Array.from({ length: pointCountOf(plan) }, (_, index) => {
    const minute = plan.from + index * plan.stepMinutes;
    return { minute, counters: sums.get(minute) ?? ZERO_COUNTERS };
  });
}
