import { minuteOf, type Period, periodsOf } from '@weir/model';

export const SERIES_STEPS = ['minute', 'hour', 'day'] as const;
export type SeriesStep = (typeof SERIES_STEPS)[number];

interface Step {
  readonly minutes: number;
  readonly count: number;
}

/** The last hour, two days, or month. */
const STEPS: Readonly<Record<SeriesStep, Step>> = {
  minute: { minutes: 1, count: 60 },
  hour: { minutes: 60, count: 48 },
  day: { minutes: 1_440, count: 31 },
};

/** The periods that a graph shows, ascending; the last one holds `now` (milliseconds since the epoch). UTC. */
export function periodsUntil(now: number, step: SeriesStep): readonly Period[] {
  const { minutes, count } = STEPS[step];
  const last = minuteOf(now);
  return Array.from({ length: count }, (_, index) => periodsOf(last - (count - 1 - index) * minutes)[step]);
}
