import {
  type Counters,
  DEFAULT_USAGE_SINCE,
  DEFAULT_USAGE_STEP,
  isCalendarDay,
  parseDuration,
  planSeries,
  pointCountOf,
  pointsByStep,
  type SeriesPlan,
  timestampOf,
  type UsageStep,
} from '@weir/model';
import type { SeriesPoint, UsageStore } from '@weir/store';
import { ApiError } from '../api/api-error.ts';

/** One of the `items` of `weir usage --since -o json`. */
export interface UsageSeriesItem {
  readonly tenant: string;
  /** The Service whose usage the points have. If absent, the points have the usage of the whole tenant. */
  readonly namespace?: string;
  readonly name?: string;
  readonly step: UsageStep;
  readonly points: readonly UsageSeriesPoint[];
}

export interface UsageSeriesPoint extends Counters {
  /** The start of the step as RFC 3339, UTC. */
  readonly at: string;
}

export interface SeriesQuerystring {
  readonly since?: string;
  readonly until?: string;
  readonly step?: UsageStep;
}

/** A tenant, or a Service with all uids that its name has had. */
export interface SeriesSubject {
  readonly tenant: string;
  readonly service?: { readonly namespace: string; readonly name: string; readonly uids: readonly string[] };
}

/** The maximum number of points in one response: about 8 MB of JSON. */
const MAX_POINTS_PER_RESPONSE = 50_000;
/** The maximum number of series that are read at the same time, so that other clients of the store need not wait for a long list. */
const MAX_CONCURRENT_SERIES = 10;

/** Plans the points of a response. Throws `ApiError` InvalidRequest if the query is invalid or the points are not kept so long. */
export function seriesPlanFor(query: SeriesQuerystring, now: number): SeriesPlan {
  const { since = DEFAULT_USAGE_SINCE, until, step = DEFAULT_USAGE_STEP } = query;
  const times = { since: timeOf('since', since, now), until: until === undefined ? now : timeOf('until', until, now) };
  const plan = planSeries({ ...times, step }, now);
  if (plan.kind === 'mistake') throw new ApiError('InvalidRequest', plan.message);
  return plan;
}

/** Resolves with one item per subject. Throws `ApiError` InvalidRequest if the response would have too many points. */
export async function readUsageSeries(
  usage: UsageStore,
  subjects: readonly SeriesSubject[],
  { plan, step = DEFAULT_USAGE_STEP }: { readonly plan: SeriesPlan; readonly step: UsageStep | undefined },
): Promise<UsageSeriesItem[]> {
  const points = pointCountOf(plan);
  if (points * subjects.length > MAX_POINTS_PER_RESPONSE)
    throw new ApiError(
      'InvalidRequest',
      `${points} points for each of ${subjects.length} tenants are more than ${MAX_POINTS_PER_RESPONSE} points, the maximum of one response; name a tenant, use a longer step, or a later "since"`,
    );
  const items: UsageSeriesItem[] = [];
  for (let from = 0; from < subjects.length; from += MAX_CONCURRENT_SERIES) {
    const page = subjects.slice(from, from + MAX_CONCURRENT_SERIES);
    items.push(...(await Promise.all(page.map((subject) => readItem(usage, subject, { plan, step })))));
  }
  return items;
}

async function readItem(
  usage: UsageStore,
  { tenant, service }: SeriesSubject,
  { plan, step }: { readonly plan: SeriesPlan; readonly step: UsageStep },
): Promise<UsageSeriesItem> {
  const { length, from, until } = plan;
  const uids = service === undefined ? [undefined] : service.uids;
  const found: SeriesPoint[] = [];
  for (const uid of uids) found.push(...(await usage.series({ tenant, service: uid, length, from, until })));
  return {
    tenant,
    ...(service && { namespace: service.namespace, name: service.name }),
    step,
    points: pointsByStep(plan, found).map(({ minute, counters }) => ({
      at: timestampOf(minute * 60_000),
      ...counters,
    })),
  };
}

/** Returns a time in milliseconds since the epoch. The text is a duration before `now`, a day, or a time with a time zone. */
function timeOf(name: string, text: string, now: number): number {
  const duration = parseDuration(text);
  const isTime = TIME_PATTERN.test(text) && isCalendarDay(text);
  const time = duration === undefined ? (isTime ? Date.parse(text) : Number.NaN) : now - duration;
  if (!Number.isNaN(time)) return time;
  throw new ApiError(
    'InvalidRequest',
    `query parameter "${name}" is "${text}"; use a duration before now such as 30m, 12h or 7d, a day as YYYY-MM-DD (UTC), or a time such as 2030-01-31T18:00:00Z`,
  );
}

const TIME_PATTERN = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;
