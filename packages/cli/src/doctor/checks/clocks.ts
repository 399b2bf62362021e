import type { Facts } from '../facts.ts';
import { API_SERVER_UNASKED, ok, REDIS_UNASKED, unchecked, type Verdict, warning } from '../finding.ts';
import { listed } from '../listed.ts';
import { judgeClocks } from '../skew.ts';

/** The header is cut to the second. */
const DATE_MS = 1_000;

export function apiServerClock({ server }: Facts): Verdict {
  if (server.kind === 'unknown') return unchecked(API_SERVER_UNASKED);
  const { date, askedAt, answeredAt } = server.value;
  if (date === undefined) return warning('not checked: its answer has no Date header');
  return judgeClocks(
    [{ name: 'it', reading: { from: date, to: date + DATE_MS, askedAt, answeredAt } }],
    'its clock is',
  );
}

export function redisClock({ redis }: Facts): Verdict {
  if (redis.kind === 'unknown') return unchecked(REDIS_UNASKED);
  const { now, askedAt, answeredAt } = redis.value;
  return judgeClocks([{ name: 'it', reading: { from: now, to: now, askedAt, answeredAt } }], 'its clock is');
}

/** How old a heartbeat may be that the store still has. */
const BEAT_MS = 3_000;

export function proxyClocks({ heartbeats }: Facts): Verdict {
  if (heartbeats.kind === 'unknown') return unchecked(heartbeats);
  const { items, askedAt, answeredAt } = heartbeats.value;
  if (items.length === 0) return ok('no proxy is heard whose clock could be compared');
  const silent = items.filter((beat) => beat.sentAt === undefined).map((beat) => beat.node);
  const clocks = items.map(({ node, sentAt, startedAt }) => ({
    name: node,
    // Of one that does not tell, its start at least cannot lie in the future.
    reading: {
      from: sentAt ?? startedAt,
      to: sentAt === undefined ? Number.POSITIVE_INFINITY : sentAt + BEAT_MS,
      askedAt,
      answeredAt,
    },
  }));
  const verdict = judgeClocks(clocks, 'their clocks are');
  if (verdict.severity !== 'ok' || silent.length === 0) return verdict;
  return warning(
    `not checked: the proxies of ${listed(silent)} are of a version that does not tell its time; look with chronyc tracking there`,
  );
}
