// How many Redis operations a large fleet needs for its leases. Each tenant has one limit of new connections per second, and is served by a
// few proxies, because a Service is served by two nodes by default.
import type { LeaseExchange } from '@weir/store';
import { type SimulationOptions, simulateFleet } from '../limits/fleet-simulation.ts';
import { seededRandom } from '../soak/random.ts';
import type { LeasesOptions } from './options.ts';
import { type ReplayCost, replayExchanges } from './replay-exchanges.ts';

/** As with two Services on two nodes each. */
export const PROXIES_PER_TENANT = 4;
export const TENANT_LIMIT = 200;
/** A warm-up of 5 s, and 10 s in which units are counted. */
const SECONDS = 15;
const ROUND_TRIP_MS = 10;
/** Every lease is exchanged at least once in the seconds before the last second. */
const REPLAYED_MS = 2_200;
const MEASURED_MS = 1_000;

/** The loads of the large fleet: what each tenant offers to its proxies, as a part of its limit. */
export const LARGE_FLEET_LOADS = {
  mixed: 'of 100 tenants, 60 are idle, 30 need 10 to 70 % of the limit, 8 need 80 to 100 %, 2 need 150 %',
  half: 'each tenant needs 50 % of its limit',
  over: 'each tenant needs 150 % of its limit',
} as const;

export type LargeFleetLoad = keyof typeof LARGE_FLEET_LOADS;

export type LargeFleetRow = ReplayCost & {
  readonly load: LargeFleetLoad;
  readonly callsPerSecond: number;
  readonly leasesPerSecond: number;
  readonly lowestError: number;
  readonly highestError: number;
  readonly highestSecond: number;
  /** Resident memory of the simulation. */
  readonly simulationBytes: number;
};

/** Simulates one load, and replays the last calls to a real Redis. Throws if shares added up to more than the limit. */
export async function simulateLargeFleet(
  load: LargeFleetLoad,
  { proxies, tenants }: Pick<LeasesOptions, 'proxies' | 'tenants'>,
): Promise<LargeFleetRow> {
  const filling: LeaseExchange[] = [];
  const measured: LeaseExchange[] = [];
  const parts = Array.from({ length: tenants }, partFor(load));
  const options: SimulationOptions = {
    proxies,
    tenants,
    proxiesPerTenant: Math.min(PROXIES_PER_TENANT, proxies),
    limit: TENANT_LIMIT,
    offered: (index, seconds, tenant) => offeredAt({ index, seconds, tenant, part: parts[tenant] ?? 0 }),
    arrivals: 'random',
    seconds: SECONDS,
    roundTripMs: ROUND_TRIP_MS,
    seed: 1,
    onExchange(exchange, atMs) {
      const untilEnd = SECONDS * 1_000 - atMs;
      if (untilEnd <= MEASURED_MS) measured.push(exchange);
      else if (untilEnd <= REPLAYED_MS) filling.push(exchange);
    },
  };
  const result = simulateFleet(options);
  const simulationBytes = process.memoryUsage.rss();
  if (result.violations > 0) throw new Error(`shares added up to more than the limit ${result.violations} times`);
  const { worstError: lowestError, busiestSecond: highestSecond, highestError } = result;
  const { callsPerSecond, leasesPerSecond } = result;
  const precision = { lowestError, highestError, highestSecond };
  const cost = await replayExchanges(filling, measured);
  return { load, callsPerSecond, leasesPerSecond, ...precision, simulationBytes, ...cost };
}

/** Returns what a tenant needs, as a part of its limit. */
function partFor(load: LargeFleetLoad): () => number {
  const random = seededRandom(1);
  if (load === 'half') return () => 0.5;
  if (load === 'over') return () => 1.5;
  return () => {
    const kind = random.integer(1, 100);
    if (kind <= 60) return 0;
    if (kind <= 90) return random.integer(10, 70) / 100;
    return kind <= 98 ? random.integer(80, 100) / 100 : 1.5;
  };
}

interface TenantLoad {
  readonly index: number;
  readonly seconds: number;
  readonly tenant: number;
  readonly part: number;
}

/** A third of the tenants have all clients at one proxy, and these clients move every 10 s. Other tenants' clients are divided evenly. */
function offeredAt({ index, seconds, tenant, part }: TenantLoad): number {
  const offered = part * TENANT_LIMIT;
  if (tenant % 3 > 0) return offered / PROXIES_PER_TENANT;
  return index === Math.floor(seconds / 10 + tenant / 7) % PROXIES_PER_TENANT ? offered : 0;
}
