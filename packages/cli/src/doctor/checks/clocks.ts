import type { Facts } from '../facts.ts';
import { API_SERVER_UNAVAILABLE, type CheckResult, notChecked, ok, REDIS_UNAVAILABLE, warning } from '../finding.ts';
import { joinList } from '../listed.ts';
import { checkClockSkew } from '../skew.ts';

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
