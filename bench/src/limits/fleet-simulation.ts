// A simulation of many proxies that lease shares of rates, in one process and without a clock. The store's rules, the division of a limit
// and the estimate of the demand are the code of Weir; clients, time and network are simulated.
import {
  DemandWindow,
  exchangeIntervalMs,
  hasDemandChanged,
  maxUnitsPerSecond,
  meanRate,
  type ShareClaim,
  unleasedShare,
  wantedShare,
} from '@weir/model';
import {
  exchangeLeases,
  type LeaseContent,
  type LeaseGrant,
  type LeaseRequest,
  MAX_LEASES_PER_EXCHANGE,
  newLeaseContent,
} from '@weir/store';
import { seededRandom } from '../soak/random.ts';
import { RateLimiter } from './rate-limiter.ts';

export interface SimulationOptions {
  readonly proxies: number;
  readonly tenants: number;
  /** The number of proxies of each tenant. */
  readonly proxiesPerTenant: number;
  /** The limit of each tenant in units per second. */
  readonly limit: number;
  /** Returns the mean offered units per second at the tenant's proxy with this index, from 0, after `seconds`. */
  offered(index: number, seconds: number, tenant: number): number;
  readonly arrivals: 'random' | 'regular';
  readonly seconds: number;
  /** The time of a call to the store and back. */
  readonly roundTripMs: number;
  readonly seed: number;
  /** When a proxy dies, and when its successor starts. The share returns 3.5 s after the death. */
  readonly deaths?: readonly { readonly proxy: number; readonly atSecond: number; readonly backAtSecond: number }[];
}

export interface SimulationResult {
  /** Of the worst tenant's worst 10 seconds: the admitted units, divided by the smaller of the offered units and the limit, minus 1. */
  readonly worstError: number;
  /** The admitted units of the 10 seconds with the most, divided by the limit, minus 1. */
  readonly highestError: number;
  /** The admitted units of all seconds, divided by the smaller of the offered units and the limit. */
  readonly used: number;
  /** Admitted units in the busiest second, as a part of the limit. */
  readonly busiestSecond: number;
  /** How often the shares of a tenant added up to more than the units that may be admitted in a second. */
  readonly violations: number;
  readonly callsPerSecond: number;
  /** The number of leases in these calls. */
  readonly leasesPerSecond: number;
}

const STEP_MS = 10;
const TICK_MS = 50;
/** Units are counted for these tenants only, to bound the memory. */
const MAX_MEASURED_TENANTS = 100;
/** The shares, windows and estimates settle before the first measured second. */
const WARM_UP_MS = 5_000;
const DEATH_NOTICE_MS = 3_500;

/** The lease of one tenant at one proxy. */
interface Row {
  readonly tenant: number;
  readonly index: number;
  readonly limiter: RateLimiter;
  share: number;
  readonly window: DemandWindow;
  demand: number;
  offered: number;
  exchangedAt: number;
  /** In the last exchange. */
  reportedDemand: number;
  wanted: number;
  held: number;
  grant: LeaseGrant;
}

interface Proxy {
  readonly id: number;
  readonly phase: number;
  readonly rows: Row[];
  life: number;
  sequence: number;
  isDown: boolean;
  /** Rows whose exchange has not been answered, and when and with which grants the answer arrives. */
  reply: { readonly at: number; readonly rows: readonly Row[]; readonly grants: readonly LeaseGrant[] } | undefined;
}

/** Runs the simulation. The result depends only on the options. */
export function simulateFleet(options: SimulationOptions): SimulationResult {
  return new Simulation(options).run();
}

class Simulation {
  readonly #options: SimulationOptions;
  readonly #content: LeaseContent = newLeaseContent();
  readonly #proxies: Proxy[];
  readonly #rowsByTenant: Row[][];
  readonly #random: () => number;
  /** By tenant, then by step. */
  readonly #admitted: Uint32Array[];
  readonly #offered: Uint32Array[];
  #calls = 0;
  #leases = 0;
  #violations = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed).next;
    const steps = (options.seconds * 1_000) / STEP_MS;
    const measured = Math.min(MAX_MEASURED_TENANTS, options.tenants);
    this.#admitted = Array.from({ length: measured }, () => new Uint32Array(steps));
    this.#offered = Array.from({ length: measured }, () => new Uint32Array(steps));
    this.#proxies = Array.from({ length: options.proxies }, (_, id) => ({
      id,
      phase: Math.floor(this.#random() * (TICK_MS / STEP_MS)) * STEP_MS,
      rows: [],
      life: 1,
      sequence: 0,
      isDown: false,
      reply: undefined,
    }));
    this.#rowsByTenant = Array.from({ length: options.tenants }, (_, tenant) => {
      const count = options.proxiesPerTenant;
      const first = tenant * count;
      return Array.from({ length: count }, (__, index) => {
        const row = newRow(tenant, index);
        this.#proxies[(first + index) % options.proxies]?.rows.push(row);
        return row;
      });
    });
  }

  run(): SimulationResult {
    const { seconds } = this.#options;
    for (let now = 0; now < seconds * 1_000; now += STEP_MS) {
      this.#changeProxies(now);
      for (const proxy of this.#proxies) {
        if (proxy.isDown) continue;
        this.#receiveReply(proxy, now);
        for (const row of proxy.rows) this.#offer(row, now);
        if (now % TICK_MS === proxy.phase && proxy.reply === undefined) this.#tick(proxy, now);
      }
      if (now % TICK_MS === 0) this.#countViolations();
    }
    return {
      ...this.#measure(),
      violations: this.#violations,
      callsPerSecond: this.#calls / seconds,
      leasesPerSecond: this.#leases / seconds,
    };
  }

  /** Ends and starts proxies, and declares ended proxies dead. */
  #changeProxies(now: number): void {
    for (const { proxy: id, atSecond, backAtSecond } of this.#options.deaths ?? []) {
      const proxy = this.#proxies[id];
      if (proxy === undefined) continue;
      if (now === atSecond * 1_000) {
        proxy.isDown = true;
        for (const row of proxy.rows) row.share = 0;
      }
      const isBack = now === backAtSecond * 1_000;
      if (now === atSecond * 1_000 + DEATH_NOTICE_MS || isBack) {
        this.#content.members.delete(`${proxy.life}:${proxy.id}`);
      }
      if (isBack) {
        Object.assign(proxy, { isDown: false, life: proxy.life + 1, sequence: 0, reply: undefined });
        for (const row of proxy.rows) Object.assign(row, newRow(row.tenant, row.index));
      }
    }
  }

  #offer(row: Row, now: number): void {
    const rate = this.#options.offered(row.index, now / 1_000, row.tenant);
    const mean = (rate * STEP_MS) / 1_000;
    const step = now / STEP_MS;
    const count =
      this.#options.arrivals === 'regular'
        ? Math.floor((step + 1) * mean) - Math.floor(step * mean)
        : poisson(mean, this.#random);
    if (count === 0) return;
    row.offered += count;
    const admitted = row.limiter.take(count, row.share, now);
    add(this.#admitted, row.tenant, { now, count: admitted });
    add(this.#offered, row.tenant, { now, count });
  }

  /** Exchanges the leases that are due. Lowers a share before the exchange. */
  #tick(proxy: Proxy, now: number): void {
    for (const row of proxy.rows) row.demand = row.window.add(now, row.offered);
    const due = proxy.rows.filter((row) => isDue(row, { now, limit: this.#leasedUnits }));
    if (due.length === 0) return;
    const requests = due.map((row) => this.#request(row, now));
    const grants: LeaseGrant[] = [];
    for (let from = 0; from < due.length; from += MAX_LEASES_PER_EXCHANGE) {
      proxy.sequence += 1;
      this.#calls += 1;
      const call = { node: `${proxy.id}`, life: proxy.life, sequence: proxy.sequence, mayRaise: true };
      const batch = requests.slice(from, from + MAX_LEASES_PER_EXCHANGE);
      grants.push(...exchangeLeases(this.#content, { ...call, requests: batch }, now));
    }
    this.#leases += due.length;
    proxy.reply = { at: now + this.#options.roundTripMs, rows: due, grants };
  }

  #request(row: Row, now: number): LeaseRequest {
    const limit = this.#leasedUnits;
    const isNew = row.exchangedAt < 0;
    const claim = claimOf(row, now);
    const wanted = isNew ? unleasedShare(this.#options.limit) : wantedShare({ limit, own: claim, ...row.grant });
    row.share = Math.min(row.share, wanted);
    const held = Math.max(row.share, row.limiter.taken(now));
    Object.assign(row, { reportedDemand: claim.demand, exchangedAt: now, wanted, held });
    const owner = { kind: 'tenant', name: `t${row.tenant}` } as const;
    return { owner, resource: 'newConnectionsPerSecond', limit, claim, held, wanted };
  }

  #receiveReply(proxy: Proxy, now: number): void {
    if (proxy.reply === undefined || proxy.reply.at > now) return;
    for (const [index, row] of proxy.reply.rows.entries()) {
      row.grant = proxy.reply.grants[index] ?? row.grant;
      row.share = row.grant.share;
      row.limiter.setMeanRate(meanRate({ limit: this.#options.limit, others: row.grant.others }), now);
    }
    proxy.reply = undefined;
  }

  #countViolations(): void {
    for (const rows of this.#rowsByTenant) {
      let sum = 0;
      for (const { share } of rows) sum += share;
      if (sum > this.#leasedUnits) this.#violations += 1;
    }
  }

  /** What all proxies of a tenant may admit in a second. */
  get #leasedUnits(): number {
    return maxUnitsPerSecond(this.#options.limit, this.#options.proxiesPerTenant);
  }

  #measure(): Pick<SimulationResult, 'worstError' | 'highestError' | 'used' | 'busiestSecond'> {
    const { limit, seconds } = this.#options;
    let worstError = 0;
    let highestError = -1;
    let admittedSum = 0;
    let possibleSum = 0;
    let busiestSecond = 0;
    for (const [tenant, admitted] of this.#admitted.entries()) {
      const sumOf = runningSums(admitted);
      const offeredSumOf = runningSums(this.#offered[tenant] ?? []);
      for (let from = WARM_UP_MS; from + 1_000 <= seconds * 1_000; from += STEP_MS) {
        busiestSecond = Math.max(busiestSecond, sumOf(from, 1_000) / limit);
        if (from + 10_000 > seconds * 1_000) continue;
        const possible = Math.min(10 * limit, offeredSumOf(from, 10_000));
        if (possible === 0) continue;
        const sum = sumOf(from, 10_000);
        worstError = Math.min(worstError, sum / possible - 1);
        highestError = Math.max(highestError, sum / (10 * limit) - 1);
        admittedSum += sum;
        possibleSum += possible;
      }
    }
    return { worstError, highestError, used: admittedSum / possibleSum, busiestSecond };
  }
}

function newRow(tenant: number, index: number): Row {
  const grant: LeaseGrant = { share: 0, others: [], rank: 0 };
  return {
    tenant,
    index,
    limiter: new RateLimiter(),
    share: 0,
    window: new DemandWindow(),
    demand: 0,
    offered: 0,
    exchangedAt: -1,
    reportedDemand: 0,
    wanted: 0,
    held: 0,
    grant,
  };
}

function claimOf({ demand, limiter }: Row, now: number): ShareClaim {
  return { demand: Math.ceil(demand), weight: 1, floor: 0, used: limiter.taken(now) };
}

/** Reports whether the row's exchange is due. All rows of a proxy are due at multiples of their interval, so that calls are few. */
function isDue(row: Row, { now, limit }: { readonly now: number; readonly limit: number }): boolean {
  const { grant, wanted, held, share, exchangedAt, reportedDemand } = row;
  if (exchangedAt < 0) return true;
  const own = claimOf(row, now);
  const interval = exchangeIntervalMs({
    limit,
    claims: [own, ...grant.others],
    share,
    wanted,
    held,
    hasDemandChanged: hasDemandChanged(own.demand, reportedDemand, limit),
  });
  return Math.floor(now / interval) > Math.floor(exchangedAt / interval);
}

function add(
  counts: readonly { [step: number]: number }[],
  tenant: number,
  { now, count }: { readonly now: number; readonly count: number },
): void {
  const ofTenant = counts[tenant];
  if (ofTenant !== undefined) ofTenant[now / STEP_MS] = (ofTenant[now / STEP_MS] ?? 0) + count;
}

/** Returns a function for the sum of the `lengthMs` milliseconds from `fromMs` on. */
function runningSums(counts: Iterable<number>): (fromMs: number, lengthMs: number) => number {
  const sums = [0];
  for (const count of counts) sums.push((sums.at(-1) ?? 0) + count);
  return (fromMs, lengthMs) => (sums[(fromMs + lengthMs) / STEP_MS] ?? 0) - (sums[fromMs / STEP_MS] ?? 0);
}

/** Returns a random number with a Poisson distribution (D. Knuth, "The Art of Computer Programming", volume 2, §3.4.1). */
function poisson(mean: number, random: () => number): number {
  const end = Math.exp(-mean);
  let count = 0;
  for (let product = random(); product > end; product *= random()) count += 1;
  return count;
}
