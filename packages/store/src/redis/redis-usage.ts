import type { Counters, UsagePeriod, UsageReport, UsageRow } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import { compareUsageBases, compareUsageRows } from '../comparators.ts';
import type { FlushResult, Incarnation, UsageSeed, UsageStore } from '../contract.ts';
import { type PeriodLength, periodsKeptAt } from '../usage-periods.ts';
import { runPipeline, runTransaction } from './connection/pipeline.ts';
import type { RedisCalls } from './connection/redis-connection.ts';
import { foldGoneServices } from './fold-services.ts';
import type { Keys } from './keys.ts';
import { decodeBases, decodeFolded, decodeReported, decodeSums, flushCalls, seedCall } from './usage-codec.ts';

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
    const sums = await this.#connection.call((redis) =>
      runPipeline(redis, (all) => tenants.reduce((pipeline, name) => pipeline.hgetall(usage.sum(name, period)), all)),
    );
    const tenantSums = tenants.map((name, index) => ({ tenant: name, sums: decodeSums(sums[index]) }));
    const services = [...new Set(tenantSums.flatMap(({ sums: byService }) => [...byService.keys()]))];
    if (services.length === 0) return [];
    const names = await this.#connection.call((redis) => redis.hmget(usage.names, ...services));
    return usageRowsFor(tenantSums, new Map(services.map((service, index) => [service, names[index] ?? '/'])));
  }

  async periods(tenant: string, length: PeriodLength): Promise<readonly UsagePeriod[]> {
    const { usage } = this.#keys;
    const candidates =
      length === 'month'
        ? (await this.#connection.call((redis) => redis.smembers(usage.months))).sort()
        : periodsKeptAt(this.#clock.now(), length);
    if (candidates.length === 0) return [];
    const exists = await this.#connection.call((redis) =>
      runPipeline(redis, (all) =>
        candidates.reduce((pipeline, period) => pipeline.exists(usage.sum(tenant, period)), all),
      ),
    );
    return candidates.filter((_, index) => exists[index] === 1);
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

  foldGoneServices(existing: ReadonlySet<string>, now: number): Promise<void> {
    return foldGoneServices({ connection: this.#connection, usage: this.#keys.usage, existing, now });
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
