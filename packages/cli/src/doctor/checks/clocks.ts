import { joinList } from '../../output/amounts.ts';
import type { Facts } from '../facts.ts';
import {
  API_SERVER_UNAVAILABLE,
  type CheckResult,
  error,
  notChecked,
  ok,
  REDIS_UNAVAILABLE,
  warning,
} from '../finding.ts';

/** Resolution of the Date header: whole seconds (RFC 9110, section 5.6.7). */
const DATE_HEADER_RESOLUTION_MS = 1_000;

export function apiServerClock({ server }: Facts): CheckResult {
  if (server.kind === 'unknown') return notChecked(API_SERVER_UNAVAILABLE);
  const { date, askedAt, answeredAt } = server.value;
  if (date === undefined) return warning('not checked: the response of the API server has no Date header');
  const reading = { from: date, to: date + DATE_HEADER_RESOLUTION_MS, askedAt, answeredAt };
  return checkClockSkew([{ name: 'the API server', reading }], "the API server's clock is");
}

export function redisClock({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  const { now, askedAt, answeredAt } = redis.value;
  return checkClockSkew([{ name: 'Redis', reading: { from: now, to: now, askedAt, answeredAt } }], "Redis's clock is");
}

/** Maximum age of a heartbeat that the store returns. */
const MAX_HEARTBEAT_AGE_MS = 3_000;

export function proxyClocks({ heartbeats }: Facts): CheckResult {
  if (heartbeats.kind === 'unknown') return notChecked(heartbeats);
  const { items, askedAt, answeredAt } = heartbeats.value;
  if (items.length === 0) return ok('no proxy sends heartbeats, so no clock is compared');
  const withoutTime = items.filter((heartbeat) => heartbeat.sentAt === undefined).map((heartbeat) => heartbeat.node);
  const clocks = items.map(({ node, sentAt, startedAt }) => ({
    name: node,
    // A heartbeat of an old version has no `sentAt`. For such a heartbeat, the check can only notice that `startedAt` is in the future.
    reading: {
      from: sentAt ?? startedAt,
      to: sentAt === undefined ? Number.POSITIVE_INFINITY : sentAt + MAX_HEARTBEAT_AGE_MS,
      askedAt,
      answeredAt,
    },
  }));
  const result = checkClockSkew(clocks, "the proxies' clocks are");
  if (result.severity !== 'ok' || withoutTime.length === 0) return result;
  return warning(
    `not checked: the proxies on ${joinList(withoutTime)} have a version that does not report the time; run chronyc tracking on these nodes`,
  );
}

/**
 * A reading of another machine's clock. All times are in milliseconds. At some moment between `askedAt` and `answeredAt` on this machine's
 * clock, the other clock showed a time between `from` and `to`.
 */
export interface ClockReading {
  readonly from: number;
  readonly to: number;
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** Returns the smallest skew that explains the reading, in milliseconds. A positive skew means that the other clock is ahead. */
export function minSkewMs({ from, to, askedAt, answeredAt }: ClockReading): number {
  const minAhead = from - answeredAt;
  const maxAhead = to - askedAt;
  return minAhead > 0 ? minAhead : maxAhead < 0 ? maxAhead : 0;
}

const WARNING_SKEW_MS = 2_000;
/** The smallest skew that is an error. With such a skew, usage is counted in the wrong minute, and Suspensions end at the wrong time. */
const ERROR_SKEW_MS = 60_000;

interface NamedClockReading {
  readonly name: string;
  readonly reading: ClockReading;
}

/** Compares other clocks with this machine's clock. `okSubject` begins the message if no clock differs. */
function checkClockSkew(clocks: readonly NamedClockReading[], okSubject: string): CheckResult {
  const skews = clocks
    .map(({ name, reading }) => ({ name, skew: minSkewMs(reading) }))
    .filter(({ skew }) => Math.abs(skew) >= WARNING_SKEW_MS);
  if (skews.length === 0) return ok(`${okSubject} within ${WARNING_SKEW_MS / 1_000} s of this machine's clock`);
  const skewTexts = skews.map(({ name, skew }) => `${name} is ${secondsText(skew)} ${skew > 0 ? 'ahead' : 'behind'}`);
  const message = `compared with this machine's clock, ${skewTexts.join(', ')}; usage per minute and the end of Suspensions depend on the clocks: synchronize all machines, including this machine, with NTP (chronyc tracking)`;
  return skews.some(({ skew }) => Math.abs(skew) >= ERROR_SKEW_MS) ? error(message) : warning(message);
}

function secondsText(ms: number): string {
  return `${(Math.abs(ms) / 1_000).toFixed(Math.abs(ms) < 10_000 ? 1 : 0)} s`;
}
