import type { Facts } from '../facts.ts';
import {
  API_SERVER_UNAVAILABLE,
  type CheckResult,
  error,
  joinList,
  notChecked,
  ok,
  REDIS_UNAVAILABLE,
  warning,
} from '../finding.ts';

/** The header is cut to the second. */
const DATE_HEADER_RESOLUTION_MS = 1_000;

export function apiServerClock({ server }: Facts): CheckResult {
  if (server.kind === 'unknown') return notChecked(API_SERVER_UNAVAILABLE);
  const { date, askedAt, answeredAt } = server.value;
  if (date === undefined) return warning('not checked: its answer has no Date header');
  return checkClockSkew(
    [{ name: 'it', reading: { from: date, to: date + DATE_HEADER_RESOLUTION_MS, askedAt, answeredAt } }],
    'its clock is',
  );
}

export function redisClock({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  const { now, askedAt, answeredAt } = redis.value;
  return checkClockSkew([{ name: 'it', reading: { from: now, to: now, askedAt, answeredAt } }], 'its clock is');
}

/** How old a heartbeat may be that the store still has. */
const MAX_HEARTBEAT_AGE_MS = 3_000;

export function proxyClocks({ heartbeats }: Facts): CheckResult {
  if (heartbeats.kind === 'unknown') return notChecked(heartbeats);
  const { items, askedAt, answeredAt } = heartbeats.value;
  if (items.length === 0) return ok('no proxy is heard whose clock could be compared');
  const silent = items.filter((beat) => beat.sentAt === undefined).map((beat) => beat.node);
  const clocks = items.map(({ node, sentAt, startedAt }) => ({
    name: node,
    // Of one that does not tell, its start at least cannot lie in the future.
    reading: {
      from: sentAt ?? startedAt,
      to: sentAt === undefined ? Number.POSITIVE_INFINITY : sentAt + MAX_HEARTBEAT_AGE_MS,
      askedAt,
      answeredAt,
    },
  }));
  const verdict = checkClockSkew(clocks, 'their clocks are');
  if (verdict.severity !== 'ok' || silent.length === 0) return verdict;
  return warning(
    `not checked: the proxies of ${joinList(silent)} are of a version that does not tell its time; look with chronyc tracking there`,
  );
}

/** A reading of another clock: it showed a time from `from` to `to` at some moment from `askedAt` to `answeredAt` of ours. */
export interface ClockReading {
  readonly from: number;
  readonly to: number;
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** By how many milliseconds the other clock is ahead (behind: negative) at least: what the reading leaves open counts for it. */
export function minSkewMs({ from, to, askedAt, answeredAt }: ClockReading): number {
  const least = from - answeredAt;
  const most = to - askedAt;
  return least > 0 ? least : most < 0 ? most : 0;
}

const WARNING_SKEW_MS = 2_000;
/** Usage goes into a minute that is not its own, and Suspensions end at the wrong time. */
const ERROR_SKEW_MS = 60_000;

export interface NamedClockReading {
  readonly name: string;
  readonly reading: ClockReading;
}

/** Of the clocks of some machines against ours. */
export function checkClockSkew(clocks: readonly NamedClockReading[], what: string): CheckResult {
  const skews = clocks
    .map(({ name, reading }) => ({ name, skew: minSkewMs(reading) }))
    .filter(({ skew }) => Math.abs(skew) >= WARNING_SKEW_MS);
  if (skews.length === 0) return ok(`${what} within ${WARNING_SKEW_MS / 1_000} s of this machine's clock`);
  const told = skews.map(({ name, skew }) => `${name} is ${secondsText(skew)} ${skew > 0 ? 'ahead' : 'behind'}`);
  const message = `compared with this machine's clock ${told.join(', ')}; usage is counted by minutes and Suspensions end by the clock: let all machines, this one too, follow NTP (chronyc tracking)`;
  return skews.some(({ skew }) => Math.abs(skew) >= ERROR_SKEW_MS) ? error(message) : warning(message);
}

function secondsText(ms: number): string {
  return `${(Math.abs(ms) / 1_000).toFixed(Math.abs(ms) < 10_000 ? 1 : 0)} s`;
}
