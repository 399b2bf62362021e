// A simulation of many proxies that lease shares of rates, in one process and without a clock. The store's rules, the division of a limit
// and the estimate of the demand are the code of Weir; clients, time and network are simulated.
import {
  exchangeIntervalMs,
  hasDemandChanged,
  maxUnitsPerSecond,
  meanRate,
  type ShareClaim,
  ungrantedShare,
  wantedShare,
} from '@weir/model';
import {
  exchangeLeases,
  type LeaseContent,
  type LeaseExchange,
  type LeaseGrant,
  type LeaseRequest,
  MAX_LEASES_PER_EXCHANGE,
  newLeaseContent,
} from '@weir/store';
import { seededRandom } from '../soak/random.ts';
import { RateLimiter } from './rate-limiter.ts';
import { SimulatedDemand } from './simulated-demand.ts';
import { type CountedUnits, STEP_MS, UnitCounts, WARM_UP_MS } from './unit-counts.ts';

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
  /** When proxies end, and when their successors start. */
  readonly absences?: readonly Absence[];
  /** The seconds at which the clients move, for `reachedAfterSeconds`. */
  readonly moves?: readonly number[];
  /** Called with each call to the store and the time of the call. */
  onExchange?(exchange: LeaseExchange, atMs: number): void;
}

export interface Absence {
  readonly proxy: number;
  /**
   * A killed proxy keeps its share for `DEATH_NOTICE_MS`. A drained proxy keeps only the units of its last second, and ends after this
   * second (see `LeaseClient.close`), as if its last connection ended when the drain begins.
   */
  readonly kind: 'killed' | 'drained';
  readonly atSecond: number;
  readonly backAtSecond: number;
}

export interface SimulationResult extends CountedUnits {
  /** How often the proxies of a tenant might together have used more than `maxUnitsPerSecond`. */
  readonly violations: number;
  /** The longest time from the start of a proxy until the proxy had its first shares and served clients; undefined without starts. */
  readonly servesAfterSeconds: number | undefined;
  /** Calls to the store, after the warm-up. */
  readonly callsPerSecond: number;
  /** The number of leases in these calls. */
  readonly leasesPerSecond: number;
}

const TICK_MS = 50;
/** The usual time from the death of a proxy until the controller, or the next proxy of the node, returns its share. */
const DEATH_NOTICE_MS = 1_000;
const DRAIN_MS = 1_000;
/** A proxy that starts serves clients when it has its first shares, or after this time. */
const MAX_START_MS = 1_000;

/** The lease of one tenant at one proxy. */
interface Row {
  readonly tenant: number;
  readonly index: number;
  readonly limiter: RateLimiter;
  share: number;
  readonly window: SimulatedDemand;
  claim: ShareClaim;
  offered: number;
  exchangedAt: number;
  /** In the last exchange. */
  reportedDemand: number;
  wanted: number;
  /** The inputs of `wanted`, which is only computed anew if they change. Saves most of the time of a simulation. */
  wantedFor: { readonly demand: number; readonly grant: LeaseGrant | undefined };
  held: number;
  /** Undefined before the first exchange. */
  grant: LeaseGrant | undefined;
}

interface Proxy {
  readonly id: number;
  readonly phase: number;
  readonly rows: Row[];
  life: number;
  startedAt: number;
  sequence: number;
  state: 'starting' | 'serving' | 'draining' | 'ended';
  /** Rows whose exchange has not been answered, and when and with which grants the answer arrives. */
  reply: { readonly at: number; readonly rows: readonly Row[]; readonly grants: readonly LeaseGrant[] } | undefined;
}

/** A proxy that has ended, or is draining. */
interface EndedProxy {
  readonly proxy: Proxy;
  readonly life: number;
  /** When its shares return. */
  readonly returnsAt: number;
  /** Their units of the last second still count. */
  readonly limiters: readonly { readonly tenant: number; readonly limiter: RateLimiter }[];
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
  readonly #counts: UnitCounts;
  #calls = 0;
  #leases = 0;
  #violations = 0;
  #longestStartMs = 0;
  readonly #ended: EndedProxy[] = [];

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed).next;
    this.#counts = new UnitCounts(options);
    this.#proxies = Array.from({ length: options.proxies }, (_, id) => ({
      id,
      phase: Math.floor(this.#random() * (TICK_MS / STEP_MS)) * STEP_MS,
      rows: [],
      life: 1,
      startedAt: 0,
      sequence: 0,
      state: 'starting',
      reply: undefined,
    }));
    this.#rowsByTenant = Array.from({ length: options.tenants }, (_, tenant) => {
      return Array.from({ length: options.proxiesPerTenant }, (__, index) => {
        const row = newRow(tenant, index, options.limit);
        this.#proxyOf(row)?.rows.push(row);
        return row;
      });
    });
  }

  run(): SimulationResult {
    const { seconds } = this.#options;
    for (let now = 0; now < seconds * 1_000; now += STEP_MS) {
      this.#changeProxies(now);
      for (const proxy of this.#proxies) {
        if (proxy.state === 'ended') continue;
        this.#receiveReply(proxy, now);
        if (proxy.state === 'starting') this.#startServing(proxy, now);
        if (proxy.state === 'serving') for (const row of proxy.rows) this.#offer(row, now);
        if (now % TICK_MS === proxy.phase && proxy.reply === undefined) this.#tick(proxy, now);
      }
      if (now % TICK_MS === 0 && now >= WARM_UP_MS) this.#countViolations(now);
    }
    const countedSeconds = seconds - WARM_UP_MS / 1_000;
    return {
      ...this.#counts.measure(this.#options),
      violations: this.#violations,
      servesAfterSeconds: this.#longestStartMs === 0 ? undefined : this.#longestStartMs / 1_000,
      callsPerSecond: this.#calls / countedSeconds,
      leasesPerSecond: this.#leases / countedSeconds,
    };
  }

  /** Ends and starts proxies, and returns the shares of ended proxies. */
  #changeProxies(now: number): void {
    for (const { proxy: id, kind, atSecond, backAtSecond } of this.#options.absences ?? []) {
      const proxy = this.#proxies[id];
      if (proxy === undefined) continue;
      if (now === Math.round(atSecond * 1_000)) this.#end(proxy, kind, now);
      if (now === Math.round(backAtSecond * 1_000)) this.#startAgain(proxy, now);
    }
    for (const { proxy, life, returnsAt } of this.#ended) {
      if (returnsAt !== now) continue;
      this.#content.members.delete(`${life}:${proxy.id}`);
      if (proxy.life === life) proxy.state = 'ended';
    }
  }

  #end(proxy: Proxy, kind: Absence['kind'], now: number): void {
    proxy.state = kind === 'drained' ? 'draining' : 'ended';
    const limiters = proxy.rows.map(({ tenant, limiter }) => ({ tenant, limiter }));
    this.#ended.push({
      proxy,
      life: proxy.life,
      returnsAt: now + (kind === 'drained' ? DRAIN_MS : DEATH_NOTICE_MS),
      limiters,
    });
  }

  #startAgain(proxy: Proxy, now: number): void {
    Object.assign(proxy, { state: 'starting', life: proxy.life + 1, startedAt: now, sequence: 0, reply: undefined });
    for (const row of proxy.rows) Object.assign(row, newRow(row.tenant, row.index, this.#options.limit));
  }

  /** Lets a proxy serve that has its first shares, or has waited for `MAX_START_MS`. */
  #startServing(proxy: Proxy, now: number): void {
    const startMs = now - proxy.startedAt;
    const hasShares = proxy.rows.every(
      ({ grant, share, wanted }) => grant !== undefined && share >= Math.min(1, wanted),
    );
    if (!hasShares && startMs < MAX_START_MS) return;
    for (const row of proxy.rows)
      if (row.share === 0 && row.wanted > 0) row.share = ungrantedShare(this.#options.limit);
    proxy.state = 'serving';
    if (proxy.startedAt > 0) this.#longestStartMs = Math.max(this.#longestStartMs, startMs);
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
    this.#counts.add(row.tenant, now, { admitted, offered: count });
  }

  /** Exchanges the leases that are due. Lowers a share before the exchange. */
  #tick(proxy: Proxy, now: number): void {
    const due = proxy.rows.filter((row) => this.#isDue(row, now, proxy.state === 'draining'));
    if (due.length === 0) return;
    const requests = due.map((row) => this.#request(row, now));
    const grants: LeaseGrant[] = [];
    const isCounted = now >= WARM_UP_MS;
    for (let from = 0; from < due.length; from += MAX_LEASES_PER_EXCHANGE) {
      proxy.sequence += 1;
      if (isCounted) this.#calls += 1;
      const call = { node: `${proxy.id}`, life: proxy.life, sequence: proxy.sequence, mayRaise: true };
      const exchange = { ...call, requests: requests.slice(from, from + MAX_LEASES_PER_EXCHANGE) };
      this.#options.onExchange?.(exchange, now);
      grants.push(...exchangeLeases(this.#content, exchange, now));
    }
    if (isCounted) this.#leases += due.length;
    proxy.reply = { at: now + this.#options.roundTripMs, rows: due, grants };
  }

  /** Measures the demand, and reports whether the lease should be exchanged. */
  #isDue(row: Row, now: number, isDraining: boolean): boolean {
    const demand = Math.ceil(row.window.add(now, row.offered));
    row.claim = { demand, weight: 1, floor: 0, used: row.limiter.taken(now) };
    const limit = this.#leasedUnits(row);
    const { others, rank } = row.grant ?? { others: [], rank: 0 };
    if (row.wantedFor.demand !== demand || row.wantedFor.grant !== row.grant) {
      row.wanted = wantedShare({ limit, own: row.claim, others, rank });
      if (isDraining) row.wanted = Math.min(row.wanted, Math.max(1, demand));
      row.wantedFor = { demand, grant: row.grant };
    }
    const intervalMs = exchangeIntervalMs({
      limit,
      claims: [row.claim, ...others],
      share: row.share,
      wanted: row.wanted,
      held: row.held,
      hasDemandChanged: hasDemandChanged(demand, row.reportedDemand, limit),
    });
    // At multiples of the interval, so that the leases of a proxy are due together.
    return Math.floor(now / intervalMs) > Math.floor(row.exchangedAt / intervalMs);
  }

  #request(row: Row, now: number): LeaseRequest {
    const { claim, wanted } = row;
    row.share = Math.min(row.share, wanted);
    row.held = Math.max(row.share, claim.used);
    row.exchangedAt = now;
    row.reportedDemand = claim.demand;
    const owner = { kind: 'tenant', name: `t${row.tenant}` } as const;
    const limit = this.#leasedUnits(row);
    return { owner, resource: 'newConnectionsPerSecond', limit, claim, held: row.held, wanted };
  }

  #receiveReply(proxy: Proxy, now: number): void {
    if (proxy.reply === undefined || proxy.reply.at > now) return;
    for (const [index, row] of proxy.reply.rows.entries()) {
      const grant = proxy.reply.grants[index];
      if (grant === undefined) continue;
      if (grant.others.length !== row.grant?.others.length) row.exchangedAt = Number.NEGATIVE_INFINITY;
      row.grant = grant;
      row.share = grant.share;
      row.limiter.setMeanRate(meanRate({ limit: this.#options.limit, others: grant.others }), now);
    }
    proxy.reply = undefined;
  }

  /** Counts the tenants whose proxies may use more than `maxUnitsPerSecond` together: by their shares, or by units already admitted. */
  #countViolations(now: number): void {
    const { limit, proxiesPerTenant } = this.#options;
    const max = maxUnitsPerSecond(limit, proxiesPerTenant);
    for (const [tenant, rows] of this.#rowsByTenant.entries()) {
      let sum = 0;
      for (const row of rows)
        if (this.#proxyOf(row)?.state !== 'ended') sum += Math.max(row.share, row.limiter.taken(now));
      for (const { proxy, life, limiters } of this.#ended) {
        if (proxy.life === life && proxy.state !== 'ended') continue;
        for (const ended of limiters) if (ended.tenant === tenant) sum += ended.limiter.taken(now);
      }
      this.#violations += sum > max ? 1 : 0;
    }
  }

  #proxyOf({ tenant, index }: Pick<Row, 'tenant' | 'index'>): Proxy | undefined {
    const { proxies, proxiesPerTenant } = this.#options;
    return this.#proxies[(tenant * proxiesPerTenant + index) % proxies];
  }

  /** What all proxies of a tenant may admit in a second, as far as the row's proxy knows them. */
  #leasedUnits({ grant }: Row): number {
    return maxUnitsPerSecond(this.#options.limit, (grant?.others.length ?? 0) + 1);
  }
}

/** Returns the lease of a proxy that has just started. */
function newRow(tenant: number, index: number, limit: number): Row {
  const limiter = new RateLimiter();
  limiter.setMeanRate(limit, 0);
  return {
    tenant,
    index,
    limiter,
    share: 0,
    window: new SimulatedDemand(),
    claim: { demand: 0, weight: 1, floor: 0, used: 0 },
    offered: 0,
    exchangedAt: Number.NEGATIVE_INFINITY,
    reportedDemand: 0,
    wanted: 0,
    wantedFor: { demand: -1, grant: undefined },
    held: 0,
    grant: undefined,
  };
}

/** Returns a random number with a Poisson distribution (D. Knuth, "The Art of Computer Programming", volume 2, §3.4.1). */
function poisson(mean: number, random: () => number): number {
  const end = Math.exp(-mean);
  let count = 0;
  for (let product = random(); product > end; product *= random()) count += 1;
  return count;
}
