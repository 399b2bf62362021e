import type { HostPort } from '@weir/runtime';
import { Redis } from 'ioredis';
import { type CommandSender, findServer } from './locate.ts';
import type { RedisCredentials, RedisTarget } from './target.ts';
import { redisOptionsFor } from './target-options.ts';

export interface ServerFinderOptions extends CommandSenderOptions {
  /** A key of ours: all are in one slot, and so in one server of a cluster. */
  readonly key: string;
}

/** Answers with the server that serves us now; rejects with `StoreError`. */
export function createServerFinder(
  target: RedisTarget,
  { key, ...options }: ServerFinderOptions,
): () => Promise<HostPort> {
  const sendToRedis = createCommandSender(target, target, options);
  const sendToSentinel = createCommandSender(target, target.sentinel, options);
  return () => findServer(target.topology, { key, sendToRedis, sendToSentinel });
}

interface CommandSenderOptions {
  /** The longest that one answer may take, the way to it included. */
  readonly timeoutMs: number;
  /** Aborted: nobody waits for the answers any more. */
  readonly signal: AbortSignal;
}

/** A connection for each question: what is asked so is asked seldom, and of servers that may be gone for good. */
function createCommandSender(
  { tls, ca }: RedisTarget,
  credentials: RedisCredentials,
  { timeoutMs, signal }: CommandSenderOptions,
): CommandSender {
  return async (at: HostPort, [command = '', ...args]) => {
    const find = async (): Promise<HostPort> => at;
    const way = { credentials, db: 0, tls, ca, findServer: find };
    const redis = new Redis({ ...redisOptionsFor(way, timeoutMs), retryStrategy: () => null });
    const end = (): void => redis.disconnect();
    const late = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let lastError: unknown;
    redis.on('error', (error) => {
      lastError = error;
    });
    late.addEventListener('abort', end);
    try {
      late.throwIfAborted();
      await redis.connect();
      return await redis.call(command, ...args);
    } catch (thrown) {
      throw late.aborted ? new Error('Command timed out') : (lastError ?? thrown);
    } finally {
      late.removeEventListener('abort', end);
      end();
    }
  };
}
