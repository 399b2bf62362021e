import {
  type Counters,
  SERIES_LENGTHS,
  type UsagePeriod,
  type UsageReport,
  type UsageRow,
} from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import { compareUsageBases, compareUsageRows } from '../comparators.ts';
import type { FlushResult, Incarnation, SeriesPoint, SeriesQuery, UsageSeed, UsageStore } from '../contract.ts';
import { blocksKeptAt, monthOfPeriod, type PeriodLength, type PointPosition, positionOf } from '../usage-periods.ts';
import { runPipeline, runTransaction } from './connection/pipeline.ts';
import type { RedisCalls } from './connection/redis-connection.ts';
import { foldGoneNodes } from './fold-nodes.ts';
import { foldGoneServices } from './fold-services.ts';
import type { Keys } from './keys.ts';
import { moveSums } from './move-sums.ts';
import { readPeriods, readPoints, readSeries, type SeriesSource } from './read-series.ts';
import {
  decodeBases,
  decodeFolded,
  decodeReported,
  decodeSums,
  flushCalls,
  seedCall,
  servicesIn,
} from './usage-codec.ts';

const MAX_EXPORT_ATTEMPTS = 5;

/** The part of `RedisCalls` that the ledger uses. Tests replace this part. */
export type UsageConnection = Pick<RedisCalls, 'call' | 'run'>;

export class RedisUsage implements UsageStore {
  readonly #connection: UsageConnection;
  readonly #keys: Keys;
  readonly #clock: Clock;

  constructor(connection: UsageConnection, keys: Keys, clock: Clock) {
    this.#connection = connection;
    this.#keys = keys;
    this.#clock = clock;
  }

  async flush(report: UsageReport): Promise<FlushResult> {
    // Sends one script call at a time. After a long outage a report is large, and the heartbeats on the same connection must not wait until
    // the whole report is sent.
    for (const { keys, args } of flushCalls(this.#keys, report)) {
      const kind = (await this.#connection.run('flush-usage', keys, args)) as FlushResult['kind'];
      if (kind !== 'accepted') return { kind };
    }
    return { kind: 'accepted' };
  }

  async rows(period: UsagePeriod, tenant?: string): Promise<readonly UsageRow[]> {
    const { usage } = this.#keys;
    const tenants =
      tenant === undefined ? await this.#connection.call((redis) => redis.smembers(usage.tenants)) : [tenant];
    if (tenants.length === 0) return [];
    const position = positionOf(period);
    const tenantSums =
      position === undefined
        ? await this.#sumsOfMonth(tenants, period)
        : await this.#sumsAt(tenants, position, monthOfPeriod(period));
    const services = [...new Set(tenantSums.flatMap(({ sums: byService }) => [...byService.keys()]))];
    if (services.length === 0) return [];
    const names = await this.#connection.call((redis) => redis.hmget(usage.names, ...services));
    return usageRowsFor(tenantSums, new Map(services.map((service, index) => [service, names[index] ?? '/'])));
  }

  async #sumsOfMonth(tenants: readonly string[], month: UsagePeriod): Promise<TenantSums[]> {
    const { usage } = this.#keys;
    const sums = await this.#connection.call((redis) =>
      runPipeline(redis, (all) => tenants.reduce((pipeline, name) => pipeline.hgetall(usage.sum(name, month)), all)),
    );
    return tenants.map((name, index) => ({ tenant: name, sums: decodeSums(sums[index]) }));
  }

  /** Reads the points of all Services that have usage in the month of the points. */
  async #sumsAt(tenants: readonly string[], position: PointPosition, month: UsagePeriod): Promise<TenantSums[]> {
    const { usage } = this.#keys;
    const fields = await this.#connection.call((redis) =>
      runPipeline(redis, (all) => tenants.reduce((pipeline, name) => pipeline.hkeys(usage.sum(name, month)), all)),
    );
    const owners = tenants.flatMap((tenant, index) =>
      [...servicesIn(fields[index] as string[])].map((service) => ({ tenant, service })),
    );
    const points = await readPoints(this.#source, owners, position);
    const sums = new Map<string, Map<string, Counters>>(tenants.map((tenant) => [tenant, new Map()]));
    for (const [index, { tenant, service }] of owners.entries()) {
      const counters = points[index];
      if (counters !== undefined) sums.get(tenant)?.set(service, counters);
    }
    return [...sums].map(([tenant, byService]) => ({ tenant, sums: byService }));
  }

  async periods(tenant: string, length: PeriodLength): Promise<readonly UsagePeriod[]> {
    if (length !== 'month') return readPeriods(this.#source, tenant, { length, now: this.#clock.now() });
    const { usage } = this.#keys;
    const months = (await this.#connection.call((redis) => redis.smembers(usage.months))).sort();
    if (months.length === 0) return [];
    const exists = await this.#connection.call((redis) =>
      runPipeline(redis, (all) => months.reduce((pipeline, month) => pipeline.exists(usage.sum(tenant, month)), all)),
    );
    return months.filter((_, index) => exists[index] === 1);
  }

  series(query: SeriesQuery): Promise<readonly SeriesPoint[]> {
    return readSeries(this.#source, query, this.#clock.now());
  }

  get #source(): SeriesSource {
    return { connection: this.#connection, usage: this.#keys.usage };
  }

  async exportSeed(months: readonly UsagePeriod[]): Promise<UsageSeed> {
    const { usage } = this.#keys;
    for (let attempt = 0; attempt < MAX_EXPORT_ATTEMPTS; attempt += 1) {
      const [tenants, nodes] = await this.#connection.call(async (redis) => {
        const replies = await runTransaction(redis, (all) => all.smembers(usage.tenants).smembers(usage.nodes));
        return replies as [string[], string[]];
      });
      const replies = await this.#connection.call((redis) =>
        runTransaction(redis, (all) => {
          all.scard(usage.tenants).scard(usage.nodes).hgetall(usage.names).hgetall(usage.folded);
          for (const month of months) for (const tenant of tenants) all.hgetall(usage.sum(tenant, month));
          for (const node of nodes) all.hgetall(usage.bases(node));
          return all;
        }),
      );
      const [tenantCount, nodeCount, names, folded, ...hashes] = replies;
      // Retries, because a new tenant or node has reported usage since the first transaction, and the second transaction did not read that
      // usage.
      if (tenantCount !== tenants.length || nodeCount !== nodes.length) continue;
      const known = new Map(Object.entries(names as Record<string, string>));
      const sumsAt = (month: number): TenantSums[] =>
        tenants.map((tenant, index) => ({ tenant, sums: decodeSums(hashes[month * tenants.length + index]) }));
      const bases = hashes.slice(months.length * tenants.length);
      return {
        months: months.map((month, index) => ({ month, rows: usageRowsFor(sumsAt(index), known) })),
        bases: nodes.flatMap((node, index) => decodeBases(node, bases[index])).sort(compareUsageBases),
        folded: decodeFolded(folded),
      };
    }
    throw new Error('a new tenant or node reported usage during each attempt to export the ledger; export it again');
  }

  async isSeeded(): Promise<boolean> {
    return (await this.#connection.call((redis) => redis.exists(this.#keys.usage.open))) === 1;
  }

  async restoredAt(): Promise<number | undefined> {
    const text = await this.#connection.call((redis) => redis.get(this.#keys.usage.open));
    return text === null || text === '1' ? undefined : Number(text);
  }

  async seed(seed: UsageSeed): Promise<'seeded' | 'already'> {
    const { keys, args } = seedCall(this.#keys, seed);
    return (await this.#connection.run('seed-usage', keys, args)) as 'seeded' | 'already';
  }

  async fold(node: string, life: number): Promise<void> {
    const { usage } = this.#keys;
    await this.#connection.run('fold-usage', [usage.folded, usage.bases(node), usage.reported], [node, life]);
  }

  async foldGoneServices(existing: ReadonlySet<string>, now: number): Promise<void> {
    const source = this.#source;
    const present = this.#clock.now();
    const tenants = await this.#connection.call((redis) => redis.smembers(this.#keys.usage.tenants));
    for (const tenant of tenants) await moveSums(source, tenant, present);
    const blocks = SERIES_LENGTHS.flatMap((length) =>
      blocksKeptAt(present, length).map((block) => ({ length, block })),
    );
    await foldGoneServices({ ...source, existing, now, blocks });
  }

  async foldGoneNodes(existing: ReadonlySet<string>, now: number): Promise<void> {
    await foldGoneNodes({ connection: this.#connection, keys: this.#keys, existing, now });
  }

  async reportedInFull(): Promise<readonly Incarnation[]> {
    const members = await this.#connection.call((redis) => redis.smembers(this.#keys.usage.reported));
    return members.map(decodeReported);
  }
}

interface TenantSums {
  readonly tenant: string;
  readonly sums: ReadonlyMap<string, Counters>;
}

function usageRowsFor(tenantSums: readonly TenantSums[], names: ReadonlyMap<string, string>): UsageRow[] {
  const rows = tenantSums.flatMap(({ tenant, sums }) =>
    [...sums].map(([service, counters]) => {
      const [namespace = '', name = ''] = (names.get(service) ?? '/').split('/', 2);
      return { service, tenant, namespace, name, counters };
    }),
  );
  return rows.sort(compareUsageRows);
}
