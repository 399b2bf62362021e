import type { HostPort } from '@weir/runtime';
import { Redis } from 'ioredis';
import { type AskAt, locate } from './locate.ts';
import type { Credentials, RedisTarget } from './target.ts';
import { optionsFor } from './target-options.ts';

export interface FindOptions extends AskingOptions {
  /** A key of ours: all are in one slot, and so in one server of a cluster. */
  readonly key: string;
}

/** Answers with the server that serves us now; rejects with `StoreError`. */
export function serverFinder(target: RedisTarget, { key, ...options }: FindOptions): () => Promise<HostPort> {
  const askRedis = asking(target, target, options);
  const askSentinel = asking(target, target.sentinel, options);
  return () => locate(target.place, { key, askRedis, askSentinel });
}

interface AskingOptions {
  /** The longest that one answer may take, the way to it included. */
  readonly timeoutMs: number;
  /** Aborted: nobody waits for the answers any more. */
  readonly signal: AbortSignal;
}

/** A connection for each question: what is asked so is asked seldom, and of servers that may be gone for good. */
function asking({ tls, ca }: RedisTarget, credentials: Credentials, { timeoutMs, signal }: AskingOptions): AskAt {
  return async (at: HostPort, [command = '', ...args]) => {
    const find = async (): Promise<HostPort> => at;
    const way = { credentials, db: 0, tls, ca, find };
    const redis = new Redis({ ...optionsFor(way, timeoutMs), retryStrategy: () => null });
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
