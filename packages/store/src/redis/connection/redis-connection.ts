import { type Clock, errorMessage, formatHostPort, type HostPort, type Logger } from '@weir/runtime';
import { Redis } from 'ioredis';
import { CallStatistics } from '../../call-statistics.ts';
import { ConnectionStatus } from '../../connection-status.ts';
import { StoreError } from '../../errors.ts';
import { createShortLivedClient, redisOptionsFor } from './client-options.ts';
import { createServerFinder } from './find-server.ts';
import { isProgrammingError, isServerReplaced, storeErrorFor } from './redis-errors.ts';
import { checkRequirements } from './redis-info.ts';
import type { RedisTarget } from './redis-target.ts';
import { defineScripts, runScript, type ScriptName } from './scripts.ts';

export interface RedisConnectionOptions {
  readonly target: RedisTarget;
  /** Any key of the fleet. In a cluster, the client connects to the server that owns the slot of this key. */
  readonly slotKey: string;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  /** The timeout of a call. */
  readonly timeoutMs: number;
}

/** The parts of the store that send plain commands. The commands of one part are measured together. */
type StorePart = 'table' | 'heartbeats' | 'usage' | 'suspensions' | 'leases';

/** What is measured as one kind of call: a Lua script, or the plain commands of one part of the store. */
type CallName = ScriptName | StorePart;

/** The connection as one part of the store uses it. */
export interface RedisCalls {
  /** Runs `send` and returns the reply. Rejects with the original error if the error is a bug of Weir, otherwise with a `StoreError`. */
  call<T>(send: (redis: Redis) => Promise<T>): Promise<T>;
  /** Runs a Lua script. The script's header describes keys, arguments and result. */
  run(script: ScriptName, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /**
   * Calls `use` with a dedicated connection for blocking commands and yields its values, until `use` ends, `signal` aborts or the store
   * closes. The connection does not reconnect: throws AWAY when the connection is lost.
   */
  withDedicatedConnection<T>(signal: AbortSignal, use: (redis: Redis) => AsyncIterable<T>): AsyncGenerator<T>;
}

const MIN_RECONNECT_DELAY_MS = 50;
const MAX_RECONNECT_DELAY_MS = 800;

/**
 * Returns how many milliseconds to wait before an attempt to connect again. The delay is random, because all proxies of a fleet lose Redis
 * at the same moment. It does not grow with the number of failed attempts: a proxy learns of a cut-off only when it reaches Redis.
 */
export function reconnectDelayMs(random: () => number): number {
  return Math.round(MIN_RECONNECT_DELAY_MS + random() * (MAX_RECONNECT_DELAY_MS - MIN_RECONNECT_DELAY_MS));
}

/**
 * One connection for calls, and dedicated connections for blocking commands. The connection for calls reconnects by itself. While the
 * connection for calls is lost, calls fail at once instead of being queued. A call that times out closes the connection, so that a hanging
 * Redis cannot fill the memory with pending calls. With Sentinel or Cluster, all connections go to the server that has the fleet's keys;
 * each reconnect of the connection for calls finds that server again.
 */
export class RedisConnection {
  readonly status: ConnectionStatus = new ConnectionStatus('connecting');
  readonly statistics: CallStatistics = new CallStatistics();
  readonly #options: RedisConnectionOptions;
  readonly #redis: Redis;
  readonly #closed = new AbortController();
  /** The server that was found at the last connect of the connection for calls. */
  #server: HostPort | undefined;
  #hasBeenReady = false;
  #lastError: unknown;
  #droppedStream: Redis['stream'] | undefined;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    const { random, target, slotKey, timeoutMs } = options;
    const findServer = createServerFinder(target, { slotKey, timeoutMs, signal: this.#closed.signal });
    this.#redis = new Redis({
      ...this.#redisOptions(async () => {
        this.#server = undefined;
        this.#server = await findServer();
        return this.#server;
      }),
      retryStrategy: () => reconnectDelayMs(random),
    });
    defineScripts(this.#redis);
    this.#redis.on('error', (error) => {
      this.#lastError = error;
    });
    this.#redis.on('ready', () => void this.#verifyServer());
    this.#redis.on('close', () => this.#markAway(this.#lastError ?? new Error('Connection is closed')));
  }

  /** Connects. Resolves when `status` is `ready` or `away`. */
  async open(): Promise<void> {
    if (this.status.state !== 'connecting') return;
    await new Promise<void>((resolve) => {
      const stop = this.status.onChange(() => {
        stop();
        resolve();
      });
      this.#redis.connect().catch(() => undefined);
    });
  }

  /** Returns the connection for one part of the store, whose plain commands are measured as `part`. */
  callsOf(part: StorePart): RedisCalls {
    return {
      call: (send) => this.#call(part, send),
      run: (script, keys, args) => this.#call(script, (redis) => runScript(redis, script, { keys, args })),
      withDedicatedConnection: (signal, use) => this.#withDedicatedConnection(signal, use),
    };
  }

  async #call<T>(name: CallName, send: (redis: Redis) => Promise<T>): Promise<T> {
    this.#assertReady();
    const { clock } = this.#options;
    const startedAt = clock.monotonic();
    try {
      const reply = await this.#withTimeout(send(this.#redis));
      this.statistics.record(name, clock.monotonic() - startedAt);
      return reply;
    } catch (thrown) {
      if (isProgrammingError(thrown)) throw thrown;
      const error = this.#errorFor(thrown);
      this.statistics.record(name, clock.monotonic() - startedAt, error.code);
      if (error.code === 'AWAY') this.#drop(error);
      throw error;
    }
  }

  async *#withDedicatedConnection<T>(signal: AbortSignal, use: (redis: Redis) => AsyncIterable<T>): AsyncGenerator<T> {
    if (signal.aborted) return;
    this.#assertReady();
    const server = this.#server;
    if (server === undefined) throw this.#errorFor(new Error('Connection is closed.'));
    const { redis, causeOf } = createShortLivedClient(this.#redisOptions(async () => server));
    const ending = AbortSignal.any([signal, this.#closed.signal]);
    const end = (): void => redis.disconnect();
    ending.addEventListener('abort', end);
    try {
      await this.#withTimeout(redis.connect());
      yield* use(redis);
    } catch (thrown) {
      if (signal.aborted) return;
      if (thrown instanceof StoreError || isProgrammingError(thrown)) throw thrown;
      const error = this.#errorFor(causeOf(thrown));
      // Drops the connection for calls too, because calls that only read do not notice that the server is no longer the primary.
      if (isServerReplaced(thrown) && error.code === 'AWAY') this.#drop(error);
      throw error;
    } finally {
      ending.removeEventListener('abort', end);
      redis.disconnect();
    }
  }

  close(): void {
    this.status.set('closed', undefined);
    this.#closed.abort();
    this.#redis.disconnect();
  }

  /** Checks the server after connecting and logging in, and sets `status`. */
  async #verifyServer(): Promise<void> {
    const { log, target, slotKey } = this.#options;
    try {
      // Selects the database again, because ioredis continues with database 0 if the database does not exist.
      if (target.db !== 0) await this.#withTimeout(this.#redis.select(target.db));
      checkRequirements(await this.#withTimeout(this.#redis.info()), this.#serverName, target.topology.kind);
      if (target.topology.kind === 'cluster') await this.#withTimeout(this.#redis.exists(slotKey));
    } catch (thrown) {
      this.#drop(this.#errorFor(thrown));
      return;
    }
    this.#lastError = undefined;
    if (this.status.state === 'closed') return;
    log.info({ redis: this.#serverName }, 'Redis is ready');
    if (this.#hasBeenReady) this.statistics.recordReconnect();
    this.#hasBeenReady = true;
    this.status.set('ready', undefined);
  }

  #assertReady(): void {
    const { state, error } = this.status;
    if (state === 'ready') return;
    if (state === 'closed') throw new StoreError('AWAY', 'the store is closed');
    throw error ?? new StoreError('AWAY', `Redis at ${this.#serverName} is not connected yet`);
  }

  /** Closes the connection for calls, so that pending calls fail and ioredis reconnects. */
  #drop(error: StoreError): void {
    this.#lastError = error;
    this.#markAway(error);
    // Disconnects only once per connection, although several calls may have failed.
    if (this.#droppedStream === this.#redis.stream) return;
    this.#droppedStream = this.#redis.stream;
    if (this.#redis.status === 'ready' || this.#redis.status === 'connect') this.#redis.disconnect(true);
  }

  #markAway(thrown: unknown): void {
    const { state, error: previous } = this.status;
    const error = this.#errorFor(thrown);
    // Does not log a refusal while connecting, because `openRedisStore` throws that error.
    const isReported = state === 'connecting' ? error.code === 'REFUSED' : previous?.code === error.code;
    if (state !== 'closed' && !isReported) this.#options.log.warn({ err: error }, 'Redis is unreachable');
    this.status.set('away', error);
  }

  #errorFor(thrown: unknown): StoreError {
    const where = this.#serverName;
    const hasFailover = this.#options.target.topology.kind !== 'single';
    if (hasFailover && isServerReplaced(thrown)) {
      const message = `Redis at ${where} no longer serves this fleet (${errorMessage(thrown)}); looking for the new server`;
      return new StoreError('AWAY', message, { cause: thrown });
    }
    return storeErrorFor(thrown, where);
  }

  /** The server's address for messages. */
  get #serverName(): string {
    const { topology, displayName } = this.#options.target;
    return topology.kind === 'single' || this.#server === undefined
      ? displayName
      : `${formatHostPort(this.#server)} (${displayName})`;
  }

  async #withTimeout<T>(reply: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#options;
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const message = `Redis at ${this.#serverName} has not responded within ${timeoutMs / 1000} s`;
    const timer = clock.setTimeout(() => reject(new StoreError('AWAY', message)), timeoutMs);
    reply.catch(() => undefined);
    try {
      return await Promise.race([reply, timeout]);
    } finally {
      timer.cancel();
    }
  }

  #redisOptions(findServer: () => Promise<HostPort>) {
    const { target, timeoutMs } = this.#options;
    // `#withTimeout` fires before the command timeout of ioredis, which is only a fallback.
    return {
      ...redisOptionsFor({ ...target, credentials: target, findServer }, timeoutMs),
      commandTimeout: timeoutMs + 100,
    };
  }
}
