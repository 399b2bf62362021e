// Series of usage: a point per minute, hour or day. The ledger keeps them for a limited time.

export const SERIES_LENGTHS = ['minute', 'hour', 'day'] as const;
export type SeriesLength = (typeof SERIES_LENGTHS)[number];

/** The number of minutes in a point of a series. */
export const MINUTES_PER_POINT: Readonly<Record<SeriesLength, number>> = { minute: 1, hour: 60, day: 1_440 };
/** The minimum number of points that a series keeps: 2 days of minutes, 60 days of hours, and two years of days. */
export const KEPT_POINTS: Readonly<Record<SeriesLength, number>> = { minute: 2_880, hour: 1_440, day: 731 };
