// Adds the usage of Services that are gone to the rows and series of `otherServicesUid`, so that the ledger does not grow with each Service
// that ever existed.
import {
  namespaceOfOtherServices,
  OTHER_SERVICES_NAME,
  otherServicesUid,
  type SeriesLength,
} from '@weir/model/data-plane';
import { GONE_SERVICE_TTL_MS } from '../limits.ts';
import { runPipeline, runTransaction } from './connection/pipeline.ts';
import { pagesOf, type SeriesSource } from './read-series.ts';
import { counterSuffixesIn, servicesIn } from './usage-codec.ts';

/** The number of Services in one call of `fold-services.lua`. Bounds the time for which one call blocks Redis. */
const SERVICES_PER_CALL = 20;
/** The number of blocks in one call of `fold-series.lua`. */
const BLOCKS_PER_CALL = 5;

export interface FoldGoneServicesOptions extends SeriesSource {
  readonly existing: ReadonlySet<string>;
  /** The time that decides which Services have been gone long enough, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** The blocks of the series at the time of the store. */
  readonly blocks: readonly SeriesBlock[];
}

export interface SeriesBlock {
  readonly length: SeriesLength;
  readonly block: number;
}

/** See `UsageStore.foldGoneServices`. If a step fails, the next call continues. */
export async function foldGoneServices(options: FoldGoneServicesOptions): Promise<void> {
  const { connection, usage, existing, now } = options;
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
    const gone = [...servicesIn(monthFields)].filter(
      (uid) => !existing.has(uid) && namespaceOfOtherServices(uid) === undefined,
    );
    if (gone.length > 0) goneByTenant.set(tenant, gone);
    suffixesByTenant.set(tenant, counterSuffixesIn(monthFields));
  }
  const gone = new Set([...goneByTenant.values()].flat());
  const isDue = (uid: string): boolean => now - Number(goneSince[uid] ?? now) >= GONE_SERVICE_TTL_MS;
  for (const [tenant, services] of goneByTenant) {
    const due = services.filter(isDue);
    const suffixes = suffixesByTenant.get(tenant) ?? [];
    if (due.length > 0) await foldServices({ ...options, tenant, months, services: due, suffixes });
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

interface FoldOptions extends FoldGoneServicesOptions {
  readonly tenant: string;
  readonly months: readonly string[];
  readonly services: readonly string[];
  /** The suffixes of the counters in the sums. */
  readonly suffixes: readonly string[];
}

/** Folds Services of one tenant. */
async function foldServices(options: FoldOptions): Promise<void> {
  const { connection, usage, tenant, months, services, suffixes } = options;
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
  // Folds the months last, because only the rows of months say which Services have series.
  for (const { uid, other } of others) await foldSeries(options, uid, other);
  const sums = months.map((month) => usage.sum(tenant, month));
  for (const page of pagesOf(others, SERVICES_PER_CALL)) {
    const pairs = page.flatMap(({ uid, other }) => [uid, other]);
    await connection.run('fold-services', sums, [suffixes.length, ...suffixes, ...pairs]);
  }
}

/** Adds the series of a Service to the series of `other`, and deletes the series of the Service. */
async function foldSeries(
  { connection, usage, blocks, tenant }: FoldOptions,
  uid: string,
  other: string,
): Promise<void> {
  const pairs = blocks.map(({ length, block }) => [
    usage.series({ tenant, service: uid }, length, block),
    usage.series({ tenant, service: other }, length, block),
  ]);
  const exists = await connection.call((redis) =>
    runPipeline(redis, (all) => pairs.reduce((pipeline, [block = '']) => pipeline.exists(block), all)),
  );
  const existing = pairs.filter((_, index) => exists[index] === 1);
  for (const page of pagesOf(existing, BLOCKS_PER_CALL)) await connection.run('fold-series', page.flat(), []);
}
