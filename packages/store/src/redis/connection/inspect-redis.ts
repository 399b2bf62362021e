// Reads the state of a Redis for `weir doctor`, even if `openRedisStore` would refuse that Redis.
import { formatHostPort, type HostPort } from '@weir/runtime';
import { StoreError } from '../../errors.ts';
import { keysFor } from '../keys.ts';
import { createShortLivedClient, redisOptionsFor } from './client-options.ts';
import { createServerFinder } from './find-server.ts';
import { storeErrorFor } from './redis-errors.ts';
import { infoField } from './redis-info.ts';
import type { RedisAccess } from './redis-target.ts';
import { targetFor } from './redis-target.ts';

export interface RedisInspection {
  /** Host and port of the server that serves the fleet. */
  readonly where: string;
  readonly version: string | undefined;
  readonly role: 'primary' | 'replica';
  readonly isLoading: boolean;
  /** The value of `maxmemory-policy`; undefined if INFO does not have the field. */
  readonly evictionPolicy: string | undefined;
  /** Bytes that Redis uses, and its `maxmemory`; 0 if Redis has no limit. */
  readonly memory: { readonly used: number; readonly max: number };
  readonly appendOnly: boolean;
  /** Whether Redis writes snapshots periodically; undefined if the Redis user may not read the configuration. */
  readonly snapshots: boolean | undefined;
  /** Whether the last write of the append-only file or of a snapshot failed. */
  readonly isFailingToPersist: boolean;
  /** The server's clock in milliseconds since the Unix epoch. */
  readonly now: number;
}

export interface InspectionOptions extends RedisAccess {
  /** The fleet. In a cluster, the server that has the keys of this fleet is inspected. */
  readonly fleet: string;
}

const INSPECTION_TIMEOUT_MS = 5_000;

/**
 * Connects, reads the state and disconnects. Rejects with `StoreError`: AWAY if no server responds in time, otherwise
 * REFUSED.
 */
export async function inspectRedis({ fleet, ...access }: InspectionOptions): Promise<RedisInspection> {
  const target = targetFor(access);
  const ended = new AbortController();
  let where = target.displayName;
  const finder = createServerFinder(target, {
    slotKey: keysFor(fleet).meta,
    timeoutMs: INSPECTION_TIMEOUT_MS,
    signal: ended.signal,
  });
  const findServer = async (): Promise<HostPort> => {
    const server = await finder();
    where = formatHostPort(server);
    return server;
  };
  const options = { ...target, credentials: target, findServer };
  const { redis, causeOf } = createShortLivedClient(redisOptionsFor(options, INSPECTION_TIMEOUT_MS));
  try {
    await redis.connect();
    const info = await redis.info();
    const save = await redis.config('GET', 'save').catch(() => undefined);
    const [seconds, micros] = await redis.time();
    return { ...parseInfo(info), where, snapshots: parseSave(save), now: millisecondsOf(seconds, micros) };
  } catch (thrown) {
    throw thrown instanceof StoreError ? thrown : storeErrorFor(causeOf(thrown), where);
  } finally {
    redis.disconnect();
    ended.abort();
  }
}

function parseInfo(info: string): Omit<RedisInspection, 'where' | 'snapshots' | 'now'> {
  const field = (name: string): string | undefined => infoField(info, name);
  const hasFailed = (name: string): boolean => (field(name) ?? 'ok') !== 'ok';
  return {
    version: field('redis_version'),
    role: field('role') === 'slave' ? 'replica' : 'primary',
    isLoading: field('loading') === '1',
    evictionPolicy: field('maxmemory_policy'),
    memory: { used: Number(field('used_memory') ?? 0), max: Number(field('maxmemory') ?? 0) },
    appendOnly: field('aof_enabled') === '1',
    isFailingToPersist: hasFailed('aof_last_write_status') || hasFailed('rdb_last_bgsave_status'),
  };
}

/** Reports whether snapshots are enabled, from the reply to `CONFIG GET save` (a list of name and value); undefined for any other reply. */
function parseSave(reply: unknown): boolean | undefined {
  return Array.isArray(reply) && reply.length === 2 ? reply[1] !== '' : undefined;
}

function millisecondsOf(seconds: number | string | undefined, micros: number | string | undefined): number {
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}
