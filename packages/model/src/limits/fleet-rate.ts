// How the proxies of a fleet share a limit that is a rate. Leases bound what the proxies admit in any second; the mean rate of each proxy
// bounds what they admit over several seconds. A limiter that may never exceed its rate within a second refuses random arrivals like a
// telephone exchange (A. K. Erlang's formula B): at 20 per second and a load of 120 %, it admits 89 % of its rate. With a tenth more in a
// second, it admits 96 %.
import type { LeasedResource, ShareQuestion } from './fleet-share.ts';

export type RateResource = 'newConnectionsPerSecond' | 'requestsPerSecond';

export function isRate(resource: LeasedResource): resource is RateResource {
  return resource === 'newConnectionsPerSecond' || resource === 'requestsPerSecond';
}

/** If a limit is at least this rate for each member, all members together exceed the limit in a second by at most a tenth. */
const MIN_PRECISE_RATE = 20;
const EXCESS_DIVISOR = 10;

/**
 * Returns how many units all members together may admit in any second: 110 % of the limit, or one unit more for each member if the limit
 * is below 20 per member. The members lease these units.
 */
export function maxUnitsPerSecond(limit: number, members: number): number {
  if (limit <= 0 || limit === Number.POSITIVE_INFINITY) return limit;
  return limit + (limit >= MIN_PRECISE_RATE * members ? Math.floor(limit / EXCESS_DIVISOR) : members);
}

/**
 * Returns how many units per second a member should admit on average: the max-min fair part of the limit, if the other members
 * admit what they admitted in the last second. The rest that the other members leave is available to each member. The mean rates of idle
 * members therefore add up to more than the limit, and only the leases bound how much these members admit together.
 */
export function meanRate({ limit, others }: Pick<ShareQuestion, 'limit' | 'others'>): number {
  const used = others.map((other) => Math.min(other.demand, other.used)).sort((a, b) => a - b);
  let rest = limit;
  let members = others.length + 1;
  for (const units of used) {
    if (units * members >= rest) break;
    rest -= units;
    members -= 1;
  }
  return rest / members;
}

/**
 * Returns the mean rate of a member that does not know what the other members admit now, because the member cannot reach the store.
 * `share` is the member's part of `maxUnitsPerSecond`. The shares add up to at most `maxUnitsPerSecond`, so these mean rates of all members
 * add up to at most the limit.
 */
export function isolatedMeanRate(share: number, { limit, members }: { limit: number; members: number }): number {
  return limit === Number.POSITIVE_INFINITY ? limit : (share * limit) / Math.max(1, maxUnitsPerSecond(limit, members));
}

// The burst after a pause is 35 % of the units of a second, but at least 7 units, or all units of a second that has fewer than 7.
const MIN_BURST_UNITS = 7;
const BURST_SECONDS = 0.35;
const SECOND_NS = 1_000_000_000;

/**
 * Returns the burst of a mean rate as in `RateLimit`. With this burst, 10 seconds exceed a rate of 20 or more by at most 3.5 %. Reports that
 * are late may add some more.
 */
export function rateBurstNs(ratePerSecond: number): bigint {
  if (ratePerSecond <= 0 || ratePerSecond === Number.POSITIVE_INFINITY) return 0n;
  const units = Math.max(1, Math.min(ratePerSecond, MIN_BURST_UNITS), ratePerSecond * BURST_SECONDS);
  // The time of one unit is rounded up, as when a unit is taken. Otherwise the burst would have room for one unit less.
  return BigInt(Math.ceil(units * Math.ceil(SECOND_NS / ratePerSecond)));
}

const MIN_CHANGE_DIVISOR = 10;
/** A change by fewer standard deviations of a Poisson process may be chance. */
const MIN_CHANGE_DEVIATIONS = 2;

/**
 * Reports whether a demand differs so much from `reported`, the demand of the member's last exchange, that the member should exchange its
 * lease at once: by more than a tenth of the limit and more than chance explains.
 */
export function hasDemandChanged(demand: number, reported: number, limit: number): boolean {
  const known = Math.min(limit, reported);
  const change = Math.abs(Math.min(limit, demand) - known);
  return change > Math.max(limit / MIN_CHANGE_DIVISOR, MIN_CHANGE_DEVIATIONS * Math.sqrt(known));
}
