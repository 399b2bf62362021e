import { backoffMs, type Clock, errorMessage, formatHostPort, type HostPort, type Logger } from '@weir/runtime';
import { Redis } from 'ioredis';
import { ConnectionStatus } from '../../connection-status.ts';
import { StoreError } from '../../errors.ts';
import { redisOptionsFor } from './client-options.ts';
import { createServerFinder } from './find-server.ts';
import { isProgrammingError, isServerReplaced, storeErrorFor } from './redis-errors.ts';
import type { RedisTarget } from './redis-target.ts';
import type { RedisTopology } from './redis-url.ts';
import { defineScripts, runScript, type ScriptName } from './scripts.ts';

export interface RedisConnectionOptions {
  readonly target: RedisTarget;
  /** A key of ours: in a cluster the server is ours that has it. */
  readonly key: string;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  /** The longest that a call may take. */
  readonly timeoutMs: number;
}

const RECONNECT_BACKOFF = { minMs: 50, maxMs: 2_000 };

/**
 * One connection for calls, which comes back by itself, and dedicated ones for what blocks. Nothing is queued while it is
 * away: a call fails at once, and one that gets no answer in time takes the connection down with it, so that a Redis that
 * hangs cannot fill our memory. With Sentinel or Cluster it is always one connection to one server, the one that has all that is ours, and
 * the dedicated ones go there too: which one that is, is asked for each time that it connects.
 */
export class RedisConnection {
  readonly status: ConnectionStatus = new ConnectionStatus('connecting');
  readonly #options: RedisConnectionOptions;
  readonly #redis: Redis;
  readonly #closed = new AbortController();
  /** The server that was found last. */
  #server: HostPort | undefined;
  #failures = 0;
  #lastError: unknown;
  #droppedStream: Redis['stream'] | undefined;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    const { random, target, key, timeoutMs } = options;
    const find = createServerFinder(target, { key, timeoutMs, signal: this.#closed.signal });
    this.#redis = new Redis({
      ...this.#redisOptions(async () => {
        this.#server = undefined;
        this.#server = await find();
        return this.#server;
      }),
      retryStrategy: () => backoffMs(++this.#failures, { ...RECONNECT_BACKOFF, random }),
    });
    defineScripts(this.#redis);
    this.#redis.on('error', (error) => {
      this.#lastError = error;
    });
    this.#redis.on('ready', () => void this.#verifyServer());
    this.#redis.on('close', () => this.#markAway(this.#lastError ?? new Error('Connection is closed')));
  }

  /** Begins, and resolves with the first verdict: `status` is `ready` or `away`. */
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

  /** Sends and waits for the answer; rejects with a `StoreError` when there is none in time, and with a bug of ours as it is. */
  async call<T>(send: (redis: Redis) => Promise<T>): Promise<T> {
    this.#assertReady();
    try {
      return await this.#withTimeout(send(this.#redis));
    } catch (thrown) {
      if (isProgrammingError(thrown)) throw thrown;
      const error = this.#errorFor(thrown);
      if (error.code === 'AWAY') this.#drop(error);
      throw error;
    }
  }

  /** Runs a script; its header says what it takes and returns. */
  run(script: ScriptName, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.call((redis) => runScript(redis, script, { keys, args }));
  }

  /**
   * Gives `use` a connection of its own, for commands that block, until it ends, the signal aborts or the store closes.
   * It does not reconnect: its loss rejects with AWAY.
   */
  async *withDedicatedConnection<T>(signal: AbortSignal, use: (redis: Redis) => AsyncIterable<T>): AsyncGenerator<T> {
    if (signal.aborted) return;
    this.#assertReady();
    const at = this.#server;
    if (at === undefined) throw this.#errorFor(new Error('Connection is closed.'));
    const redis = new Redis({ ...this.#redisOptions(async () => at), retryStrategy: () => null });
    const ending = AbortSignal.any([signal, this.#closed.signal]);
    const end = (): void => redis.disconnect();
    let lastError: unknown;
    redis.on('error', (error) => {
      lastError = error;
    });
    ending.addEventListener('abort', end);
    try {
      await this.#withTimeout(redis.connect());
      yield* use(redis);
    } catch (thrown) {
      if (signal.aborted) return;
      if (thrown instanceof StoreError || isProgrammingError(thrown)) throw thrown;
      const error = this.#errorFor(lastError ?? thrown);
      // the calls may only read, and would never be told
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

  /** Connected, and let in: it may be used if it is one that we can rely on. */
  async #verifyServer(): Promise<void> {
    const { log, target, key } = this.#options;
    try {
      // ioredis has asked for it too, but goes on with the first database when this one does not exist
      if (target.db !== 0) await this.#withTimeout(this.#redis.select(target.db));
      checkRequirements(await this.#withTimeout(this.#redis.info()), this.#serverName, target.topology.kind);
      if (target.topology.kind === 'cluster') await this.#withTimeout(this.#redis.exists(key));
    } catch (thrown) {
      this.#drop(this.#errorFor(thrown));
      return;
    }
    this.#failures = 0;
    this.#lastError = undefined;
    if (this.status.state === 'closed') return;
    log.info({ redis: this.#serverName }, 'Redis is ready');
    this.status.set('ready', undefined);
  }

  #assertReady(): void {
    const { state, error } = this.status;
    if (state === 'ready') return;
    if (state === 'closed') throw new StoreError('AWAY', 'the store is closed');
    throw error ?? new StoreError('AWAY', `Redis at ${this.#serverName} is not connected yet`);
  }

  /** Ends the connection, and what waits on it; another one is tried. */
  #drop(error: StoreError): void {
    this.#lastError = error;
    this.#markAway(error);
    // once for each connection, however many calls have failed on it
    if (this.#droppedStream === this.#redis.stream) return;
    this.#droppedStream = this.#redis.stream;
    if (this.#redis.status === 'ready' || this.#redis.status === 'connect') this.#redis.disconnect(true);
  }

  #markAway(thrown: unknown): void {
    const { state, error: problem } = this.status;
    const error = this.#errorFor(thrown);
    // a refusal at the start is thrown to whoever opens the store
    const isTold = state === 'connecting' ? error.code === 'REFUSED' : problem?.code === error.code;
    if (state !== 'closed' && !isTold) this.#options.log.warn({ err: error }, 'Redis is away');
    this.status.set('away', error);
  }

  #errorFor(thrown: unknown): StoreError {
    const where = this.#serverName;
    const isFound = this.#options.target.topology.kind !== 'single';
    if (isFound && isServerReplaced(thrown)) {
      const message = `Redis at ${where} serves us no longer (${errorMessage(thrown)}); another is looked for`;
      return new StoreError('AWAY', message, { cause: thrown });
    }
    return storeErrorFor(thrown, where);
  }

  /** For people. */
  get #serverName(): string {
    const { topology, displayName } = this.#options.target;
    return topology.kind === 'single' || this.#server === undefined
      ? displayName
      : `${formatHostPort(this.#server)} (${displayName})`;
  }

  async #withTimeout<T>(answer: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#options;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const message = `Redis at ${this.#serverName} has not answered within ${timeoutMs / 1000} s`;
    const timer = clock.setTimeout(() => reject(new StoreError('AWAY', message)), timeoutMs);
    answer.catch(() => undefined);
    try {
      return await Promise.race([answer, late]);
    } finally {
      timer.cancel();
    }
  }

  #redisOptions(findServer: () => Promise<HostPort>) {
    const { target, timeoutMs } = this.#options;
    // The handshake has a limit of its own; calls have theirs, a little shorter.
    return {
      ...redisOptionsFor({ ...target, credentials: target, findServer }, timeoutMs),
      commandTimeout: timeoutMs + 100,
    };
  }
}

const MIN_REDIS_MAJOR_VERSION = 7;

/** Throws REFUSED or AWAY unless what `INFO` says is a Redis that Weir can trust its data to. `found`: how we came there. */
export function checkRequirements(info: string, where: string, found: RedisTopology['kind']): void {
  const field = (name: string): string | undefined => new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1];
  if (field('loading') === '1') throw new StoreError('AWAY', `Redis at ${where} is still loading its data`);
  const version = field('redis_version');
  if (version === undefined || Number.parseInt(version, 10) < MIN_REDIS_MAJOR_VERSION) {
    throw new StoreError(
      'REFUSED',
      `Redis at ${where} is version ${version ?? 'unknown'}; Weir needs ${MIN_REDIS_MAJOR_VERSION}.0 or newer`,
    );
  }
  const policy = field('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    throw new StoreError(
      'REFUSED',
      `Redis at ${where} has maxmemory-policy ${policy}, which silently drops what Weir has stored; set it to noeviction`,
    );
  }
  if (field('role') === 'slave') {
    const advice = found === 'single' ? '; point the Redis URL at the primary' : ', and not yet the primary again';
    throw new StoreError('AWAY', `Redis at ${where} is a replica${advice}`);
  }
  // it is there only with min-replicas-to-write, and at 0 every write is refused
  if (field('min_slaves_good_slaves') === '0') {
    const why = 'has no replica that follows, and takes no writes without (min-replicas-to-write)';
    throw new StoreError('AWAY', `Redis at ${where} ${why}`);
  }
}
