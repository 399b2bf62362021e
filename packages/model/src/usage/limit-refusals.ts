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
  /** What was used of the limit. Absent if unknown, and if the limit holds per client. */
  readonly used?: LimitUse;
}

/**
 * The use of a limit by the tenant, and by the Service alone: open connections if the reason is `connection-limit`, else connections or
 * requests per second, as the mean of the minute.
 */
export interface LimitUse {
  readonly tenant: number;
  readonly service: number;
}

/** The Service stops showing the refusals after a limit has refused at most 1 % of the clients for so many minutes. */
export const QUIET_MINUTES = 5;
const MAX_REFUSED_SHARE = 0.01;
/** Fewer refusals in a minute are not shown, so that a single client that retries does not degrade a Service with few clients. */
const MIN_SHOWN_REFUSALS = 10;

/**
 * Returns the refusals to show for one complete minute. `rows` is the usage of this minute, with all Services of each tenant. Refusals
 * because of a `connection-limit` have no `used`, because the usage does not contain how many connections are open.
 */
export function limitRefusalsIn(rows: readonly UsageRow[], minute: number): LimitRefusals[] {
  const acceptedByTenant = new Map<LimitReason, ReadonlyMap<string, number>>();
  return rows.flatMap((row) =>
    LIMIT_REASONS.flatMap((reason): LimitRefusals[] => {
      const refused = refusalCount(row.counters, [reason]);
      const accepted = acceptedIn(row, reason);
      const isShown = refused >= MIN_SHOWN_REFUSALS && refused > MAX_REFUSED_SHARE * (accepted + refused);
      if (!isShown) return [];
      const base = { service: row.service, minute, reason, refused, accepted };
      if (reason !== 'rate-limit' && reason !== 'too-many-requests') return [base];
      const ofTenants = acceptedByTenant.get(reason) ?? sumsByTenant(rows, reason);
      acceptedByTenant.set(reason, ofTenants);
      return [{ ...base, used: { tenant: (ofTenants.get(row.tenant) ?? 0) / 60, service: accepted / 60 } }];
    }),
  );
}

function sumsByTenant(rows: readonly UsageRow[], reason: LimitReason): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(row.tenant, (sums.get(row.tenant) ?? 0) + acceptedIn(row, reason));
  return sums;
}

/** Returns how many connections or requests a limit admitted. An answer with the status 429 counts as a request in the usage. */
function acceptedIn({ counters }: UsageRow, reason: LimitReason): number {
  if (reason !== 'too-many-requests') return counters.connections;
  return Math.max(0, counters.requests - refusalCount(counters, [reason]));
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
