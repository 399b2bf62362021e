// Decides which Services show that a limit refuses their clients. A Service shows this if a limit refused more than 1 % of its connections
// or requests in one of the last five minutes, and at least ten.
import { refusalCount, type UsageRow } from './report.ts';

/** The reasons of refusals that a limit of a tenant or Service causes. */
export const LIMIT_REASONS = ['connection-limit', 'client-limit', 'rate-limit', 'too-many-requests'] as const;
export type LimitReason = (typeof LIMIT_REASONS)[number];

/** What a limit did to the clients of a Service in one minute. Counts requests if the reason is `too-many-requests`, else connections. */
export interface LimitRefusals {
  /** UID of the Service. */
  readonly service: string;
  /** Whole minutes since the epoch, UTC. */
  readonly minute: number;
  readonly reason: LimitReason;
  readonly refused: number;
  readonly accepted: number;
}

/** How long a limit must refuse no more than 1 % of the clients until the Service does not show the refusals any more. */
export const QUIET_MINUTES = 5;
const MAX_REFUSED_SHARE = 0.01;
/** Fewer refusals in a minute are not shown, so that a single client that retries does not degrade a Service with few clients. */
const MIN_SHOWN_REFUSALS = 10;

/** Returns the refusals to show for one complete minute. `rows` is the usage in this minute. */
export function limitRefusalsIn(rows: readonly UsageRow[], minute: number): LimitRefusals[] {
  return rows.flatMap(({ service, counters }) =>
    LIMIT_REASONS.flatMap((reason): LimitRefusals[] => {
      const refused = refusalCount(counters, [reason]);
      // An answer with the status 429 counts as a request. A refused connection does not count as a connection.
      const accepted = reason === 'too-many-requests' ? Math.max(0, counters.requests - refused) : counters.connections;
      const isShown = refused >= MIN_SHOWN_REFUSALS && refused > MAX_REFUSED_SHARE * (accepted + refused);
      return isShown ? [{ service, minute, reason, refused, accepted }] : [];
    }),
  );
}

/**
 * Returns the refusals that each Service shows, by UID. `recent` are the refusals of the last `QUIET_MINUTES`, and `shown` is the last
 * result. The figures of a Service change only if its limits refuse twice as many clients or for another reason, because each change
 * writes the status of the Service and an Event.
 */
export function refusalsToShow(
  shown: ReadonlyMap<string, LimitRefusals>,
  recent: readonly LimitRefusals[],
): ReadonlyMap<string, LimitRefusals> {
  const next = new Map<string, LimitRefusals>();
  for (const [service, refusals] of Map.groupBy(recent, (each) => each.service)) {
    const known = shown.get(service);
    const worst = refusals.reduce((a, b) => (b.refused > a.refused ? b : a));
    const isCurrent = known !== undefined && refusals.some(({ reason }) => reason === known.reason);
    next.set(service, isCurrent && worst.refused < 2 * known.refused ? known : worst);
  }
  return next;
}
