// A look at a Redis, also at one that Weir would refuse: what is there, and what is wrong with it, is for others to decide.
import { formatHostPort, type HostPort } from '@weir/runtime';
import { Redis } from 'ioredis';
import { StoreError } from '../../errors.ts';
import { keysFor } from '../keys.ts';
import { redisOptionsFor } from './client-options.ts';
import { createServerFinder } from './find-server.ts';
import { storeErrorFor } from './redis-errors.ts';
import type { RedisAccess } from './redis-target.ts';
import { targetFor } from './redis-target.ts';

export interface RedisInspection {
  /** Host and port of the server that serves the fleet. */
  readonly where: string;
  readonly version: string | undefined;
  readonly role: 'primary' | 'replica';
  readonly isLoading: boolean;
  /** `maxmemory-policy`; undefined: it does not say. */
  readonly evictionPolicy: string | undefined;
  readonly appendOnly: boolean;
  /** Whether it writes snapshots by itself; undefined: it does not let us see. */
  readonly snapshots: boolean | undefined;
  /** The last write of the log or of a snapshot failed. */
  readonly isFailingToPersist: boolean;
  /** Milliseconds since the epoch, by its clock. */
  readonly now: number;
}

export interface InspectionOptions extends RedisAccess {
  /** In a cluster each fleet has a server of its own. */
  readonly fleet: string;
}

const INSPECTION_TIMEOUT_MS = 5_000;

/** Connects once, asks, and is gone. Rejects with `StoreError`: AWAY when nobody answers in time, else REFUSED. */
export async function inspectRedis({ fleet, ...access }: InspectionOptions): Promise<RedisInspection> {
  const target = targetFor(access);
  const ended = new AbortController();
  let where = target.displayName;
  const finder = createServerFinder(target, {
    key: keysFor(fleet).meta,
    timeoutMs: INSPECTION_TIMEOUT_MS,
    signal: ended.signal,
  });
  const find = async (): Promise<HostPort> => {
    const at = await finder();
    where = formatHostPort(at);
    return at;
  };
  const way = { ...target, credentials: target, findServer: find };
  const redis = new Redis({ ...redisOptionsFor(way, INSPECTION_TIMEOUT_MS), retryStrategy: () => null });
  let lastError: unknown;
  redis.on('error', (error) => {
    lastError = error;
  });
  try {
    await redis.connect();
    const info = await redis.info();
    const save = await redis.config('GET', 'save').catch(() => undefined);
    const [seconds, micros] = await redis.time();
    return { ...parseInfo(info), where, snapshots: parseSave(save), now: millisecondsOf(seconds, micros) };
  } catch (thrown) {
    throw thrown instanceof StoreError ? thrown : storeErrorFor(lastError ?? thrown, where);
  } finally {
    redis.disconnect();
    ended.abort();
  }
}

function parseInfo(info: string): Omit<RedisInspection, 'where' | 'snapshots' | 'now'> {
  const field = (name: string): string | undefined => new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1];
  const isBad = (name: string): boolean => (field(name) ?? 'ok') !== 'ok';
  return {
    version: field('redis_version'),
    role: field('role') === 'slave' ? 'replica' : 'primary',
    isLoading: field('loading') === '1',
    evictionPolicy: field('maxmemory_policy'),
    appendOnly: field('aof_enabled') === '1',
    isFailingToPersist: isBad('aof_last_write_status') || isBad('rdb_last_bgsave_status'),
  };
}

/** The answer of CONFIG GET: name, value. */
function parseSave(answer: unknown): boolean | undefined {
  return Array.isArray(answer) && answer.length === 2 ? answer[1] !== '' : undefined;
}

function millisecondsOf(seconds: number | string | undefined, micros: number | string | undefined): number {
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}
