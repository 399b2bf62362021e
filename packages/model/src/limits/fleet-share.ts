// How the proxies of a fleet divide a limit: weighted max-min fairness (D. Bertsekas and R. Gallager, "Data Networks", §6.5.2) in whole
// units. Each proxy computes its own share from the claims of all members. The store keeps the sum of all shares within the limit, even
// if the members computed their shares from claims of different moments.

/** The limits of a tenant or a Service that hold for the whole fleet, by their name in `TenantLimits`. */
export const LEASED_RESOURCES = [
  'connections',
  'newConnectionsPerSecond',
  'requestsPerSecond',
  'inBitsPerSecond',
  'outBitsPerSecond',
] as const;
export type LeasedResource = (typeof LEASED_RESOURCES)[number];

/**
 * What a member, one incarnation of a proxy, needs of a limit. All numbers are whole units of the limit (connections, connections or
 * requests per second, bits per second) up to 2^53, except `weight`.
 */
export interface ShareClaim {
  /** What the member would use if it had the whole limit. */
  readonly demand: number;
  /** If demands exceed the limit, members get shares in proportion to their weights; above 0. */
  readonly weight: number;
  /** What the member cannot give up, such as its open connections. */
  readonly floor: number;
  /** Of a rate: what the member admitted in the last second. 0 for other limits. */
  readonly used: number;
}

export interface ShareQuestion {
  readonly limit: number;
  readonly own: ShareClaim;
  /** The claims of all other members, in the same order at each member. */
  readonly others: readonly ShareClaim[];
  /** The number of members before this member in that order. The members' rounding errors cancel each other in this order. */
  readonly rank: number;
}

/**
 * Idle members together keep at most a 50th of the limit if other members need the limit, or one unit each if that is more. Without a
 * share, an idle proxy would refuse its first client.
 */
const IDLE_SHARE_DIVISOR = 50;

/** Returns the share of the limit that the member `own` should have, in whole units. */
export function wantedShare({ limit, own, others, rank }: ShareQuestion): number {
  return sharesFor(limit, others.toSpliced(rank, 0, own))[rank] ?? 0;
}

/**
 * Returns the members' shares in the order of `claims`. Each member gets its floor, and if the limit suffices at least one unit. Members
 * that need less than their fair part get what they need; the other members divide the rest by weight. If all demands are met, the rest is
 * divided in proportion to the demands, as if each member needed half of an equal part more: a busy proxy needs room for random arrivals,
 * and an idle proxy for a sudden burst. The shares add up to the limit, or to the floors if the floors exceed the limit.
 */
export function sharesFor(limit: number, claims: readonly ShareClaim[]): readonly number[] {
  const count = claims.length;
  if (count === 0) return [];
  const idleShare = limit < count ? 0 : Math.max(1, Math.floor(limit / (IDLE_SHARE_DIVISOR * count)));
  const withIdleShares = claims.map(({ floor }) => Math.max(floor, idleShare));
  const minimums = sum(withIdleShares) <= limit ? withIdleShares : claims.map(({ floor }) => floor);
  if (sum(minimums) >= limit) return minimums;
  const exact = filledTo(limit, claims, minimums);
  const unneeded = Math.max(0, limit - sum(exact));
  const parts = claims.map(({ demand }) => Math.min(demand, limit) + limit / (2 * count));
  const unneededPerPart = unneeded / sum(parts);
  return rounded(
    exact.map((share, member) => share + unneededPerPart * (parts[member] ?? 0)),
    limit,
    minimums,
  );
}

/** The share of a proxy that serves clients before the store has granted a share: a tenth of the limit, but at least one unit. */
export function ungrantedShare(limit: number): number {
  return Math.min(limit, Math.max(1, Math.floor(limit / 10)));
}

export interface LeaseState {
  readonly limit: number;
  /** The claims of all members. */
  readonly claims: readonly ShareClaim[];
  /** The share that the store granted at the member's last exchange. */
  readonly share: number;
  /** The share that the member wanted at that exchange. */
  readonly wanted: number;
  /** The most that the member may have been using at that exchange. */
  readonly held: number;
  /** Whether the member needs clearly more or less than the member reported at that exchange. */
  readonly hasDemandChanged: boolean;
}

const MAX_INTERVAL_MS = 2_000;
const CALM_INTERVAL_MS = 500;
const TIGHT_INTERVAL_MS = 100;
const UNSETTLED_INTERVAL_MS = 50;
const TIGHT_PART = 0.7;
const TIGHT_TOLERANCE = 0.02;
const CALM_TOLERANCE = 0.1;
/** Each exchange returns the claims of all members. Above this number of members, exchanges are therefore less frequent. */
const MAX_FREQUENT_MEMBERS = 20;

/**
 * Returns after how many milliseconds a member exchanges the lease again: 20 times per second while the lease is not settled or after the
 * demand has changed, 10 times per second if more than 70 % of the limit are needed, otherwise twice per second. With more than 20 members
 * the interval grows in proportion to their number, to at most 2 seconds.
 */
export function exchangeIntervalMs(lease: LeaseState): number {
  const isTight = sum(lease.claims.map(({ demand }) => demand)) > TIGHT_PART * lease.limit;
  const isUnsettled = lease.hasDemandChanged || !isSettled(lease, isTight ? TIGHT_TOLERANCE : CALM_TOLERANCE);
  const intervalMs = isUnsettled ? UNSETTLED_INTERVAL_MS : isTight ? TIGHT_INTERVAL_MS : CALM_INTERVAL_MS;
  return Math.min(MAX_INTERVAL_MS, intervalMs * Math.max(1, lease.claims.length / MAX_FREQUENT_MEMBERS));
}

/**
 * Whether a member has its wanted share and uses no more. Differences of at most `tolerance`, a part of the limit, do not
 * count. A member that wants a share and has none is not settled, because it refuses all clients.
 */
function isSettled({ limit, share, wanted, held }: LeaseState, tolerance: number): boolean {
  if (share === 0 && wanted > 0) return false;
  return Math.max(share, wanted, held) - Math.min(share, wanted) <= limit * tolerance;
}

/**
 * Raises all shares from `minimums` to the same level per weight, each share at most to its demand, until the shares add up to the limit
 * or all demands are met. A share starts to rise at the level `minimum / weight` and stops at `demand / weight`.
 */
function filledTo(limit: number, claims: readonly ShareClaim[], minimums: readonly number[]): number[] {
  const slopeChanges = claims.flatMap(({ demand, weight }, member) => {
    const minimum = minimums[member] ?? 0;
    if (demand <= minimum) return [];
    return [
      { level: minimum / weight, change: weight },
      { level: demand / weight, change: -weight },
    ];
  });
  slopeChanges.sort((a, b) => a.level - b.level);
  let rest = limit - sum(minimums);
  let level = 0;
  let slope = 0;
  for (const next of slopeChanges) {
    const taken = (next.level - level) * slope;
    if (taken >= rest) break;
    rest -= taken;
    level = next.level;
    slope += next.change;
  }
  // After the last change all demands are met, and the slope is 0 up to rounding errors.
  const last = slopeChanges.at(-1)?.level ?? 0;
  if (level < last && slope > 0) level = Math.min(last, level + rest / slope);
  return claims.map(({ demand, weight }, member) => {
    const minimum = minimums[member] ?? 0;
    return Math.max(minimum, Math.min(demand, level * weight));
  });
}

/** Rounds shares down to whole units and gives the units that are left to the members with the largest fractions. */
function rounded(exact: readonly number[], limit: number, minimums: readonly number[]): readonly number[] {
  const shares = exact.map(Math.floor);
  let rest = limit - sum(shares);
  const byFraction = [...exact.keys()].sort((a, b) => fractionOf(exact, b) - fractionOf(exact, a) || a - b);
  // Rounding errors of large numbers may leave more units than there are members, or may give away too many units.
  while (rest !== 0) {
    const before = rest;
    for (const member of byFraction) {
      if (rest > 0) {
        shares[member] = (shares[member] ?? 0) + 1;
        rest -= 1;
      } else if (rest < 0 && (shares[member] ?? 0) > (minimums[member] ?? 0)) {
        shares[member] = (shares[member] ?? 0) - 1;
        rest += 1;
      }
    }
    if (rest === before) break;
  }
  return shares;
}

function fractionOf(exact: readonly number[], member: number): number {
  return (exact[member] ?? 0) % 1;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
