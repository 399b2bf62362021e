// Adds the usage of Services that are gone to rows of other Services, so that the ledger does not grow with each Service that ever existed.
import { namespaceOfOtherServices, OTHER_SERVICES_NAME, otherServicesUid } from '@weir/model/data-plane';
import { GONE_SERVICE_TTL_MS } from '../limits.ts';
import { periodsKeptAt } from '../usage-periods.ts';
import { runPipeline, runTransaction } from './connection/pipeline.ts';
import type { UsageKeys } from './keys.ts';
import type { UsageConnection } from './redis-usage.ts';
import { counterSuffixesIn } from './usage-codec.ts';

/** The number of Services in one call of `fold-services.lua`. Bounds the time for which one call blocks Redis. */
const SERVICES_PER_CALL = 20;

export interface FoldGoneServicesOptions {
  readonly connection: UsageConnection;
  readonly usage: UsageKeys;
  readonly existing: ReadonlySet<string>;
  readonly now: number;
}

/** See `UsageStore.foldGoneServices`. If a step fails, the next call continues. */
export async function foldGoneServices({ connection, usage, existing, now }: FoldGoneServicesOptions): Promise<void> {
  const replies = await connection.call((redis) =>
    runTransaction(redis, (all) => all.smembers(usage.tenants).smembers(usage.months).hgetall(usage.gone)),
  );
  const [tenants, months, goneSince] = replies as [string[], string[], Record<string, string>];
  const goneByTenant = new Map<string, string[]>();
  const suffixesByTenant = new Map<string, readonly string[]>();
  for (const tenant of tenants) {
    const fields = await connection.call((redis) =>
      runPipeline(redis, (all) => months.reduce((pipeline, month) => pipeline.hkeys(usage.sum(tenant, month)), all)),
    );
    const monthFields = (fields as string[][]).flat();
    const services = new Set(monthFields.map((field) => field.slice(0, field.lastIndexOf(':'))));
    const gone = [...services].filter((uid) => !existing.has(uid) && namespaceOfOtherServices(uid) === undefined);
    if (gone.length > 0) goneByTenant.set(tenant, gone);
    // Each counter of a day is also in the sum of the day's month.
    suffixesByTenant.set(tenant, counterSuffixesIn(monthFields));
  }
  const gone = new Set([...goneByTenant.values()].flat());
  const isDue = (uid: string): boolean => now - Number(goneSince[uid] ?? now) >= GONE_SERVICE_TTL_MS;
  for (const [tenant, services] of goneByTenant) {
    const due = services.filter(isDue);
    const suffixes = suffixesByTenant.get(tenant) ?? [];
    if (due.length > 0) await foldRows({ connection, usage, now, tenant, months, services: due, suffixes });
  }
  const isKept = (uid: string): boolean => gone.has(uid) && !isDue(uid);
  const forgotten = Object.keys(goneSince).filter((uid) => !isKept(uid));
  const unnamed = forgotten.filter((uid) => !existing.has(uid));
  const added = [...gone].filter((uid) => goneSince[uid] === undefined);
  await connection.call((redis) =>
    runTransaction(redis, (all) => {
      for (const uid of added) all.hset(usage.gone, uid, now);
      for (const uid of forgotten) all.hdel(usage.gone, uid);
      for (const uid of unnamed) all.hdel(usage.names, uid);
      return all;
    }),
  );
}

interface FoldRowsOptions extends Pick<FoldGoneServicesOptions, 'connection' | 'usage' | 'now'> {
  readonly tenant: string;
  readonly months: readonly string[];
  readonly services: readonly string[];
  /** The suffixes of the counters in the sums. */
  readonly suffixes: readonly string[];
}

/** Folds the rows of one tenant. Rows per hour and minute expire by themselves. */
async function foldRows(options: FoldRowsOptions): Promise<void> {
  const { connection, usage, now, tenant, months, services, suffixes } = options;
  const candidates = [...months, ...periodsKeptAt(now, 'day')].map((period) => usage.sum(tenant, period));
  const exists = await connection.call((redis) =>
    runPipeline(redis, (all) => candidates.reduce((pipeline, sum) => pipeline.exists(sum), all)),
  );
  const sums = candidates.filter((_, index) => exists[index] === 1);
  const names = await connection.call((redis) => redis.hmget(usage.names, ...services));
  const others = services.map((uid, index) => {
    const namespace = (names[index] ?? '/').split('/', 1)[0] ?? '';
    return { uid, namespace, other: otherServicesUid(namespace) };
  });
  await connection.call((redis) =>
    runPipeline(redis, (all) => {
      for (const { namespace, other } of others) all.hset(usage.names, other, `${namespace}/${OTHER_SERVICES_NAME}`);
      return all;
    }),
  );
  for (let from = 0; from < others.length; from += SERVICES_PER_CALL) {
    const pairs = others.slice(from, from + SERVICES_PER_CALL).flatMap(({ uid, other }) => [uid, other]);
    await connection.run('fold-services', sums, [suffixes.length, ...suffixes, ...pairs]);
  }
}
