import { minuteOf, periodsOf, type UsagePeriod } from '@weir/model';

export const SERIES_STEPS = ['minute', 'hour', 'day'] as const;
export type SeriesStep = (typeof SERIES_STEPS)[number];

interface SeriesRange {
  readonly minutes: number;
  readonly count: number;
}

/** The last hour, two days, or month. */
const SERIES_RANGES: Readonly<Record<SeriesStep, SeriesRange>> = {
  minute: { minutes: 1, count: 60 },
  hour: { minutes: 60, count: 48 },
  day: { minutes: 1_440, count: 31 },
};

/** The periods that a graph shows, ascending; the last one holds `now` (milliseconds since the epoch). UTC. */
export function seriesPeriodsFor(now: number, step: SeriesStep): readonly UsagePeriod[] {
  const { minutes, count } = SERIES_RANGES[step];
  const last = minuteOf(now);
  return Array.from({ length: count }, (_, index) => periodsOf(last - (count - 1 - index) * minutes)[step]);
}
