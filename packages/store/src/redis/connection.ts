import { backoffMs, type Clock, errorMessage, formatHostPort, type HostPort, type Logger } from '@weir/runtime';
import { Redis } from 'ioredis';
import { ConnectionStatus } from '../connection-status.ts';
import { StoreError } from '../error.ts';
import { isOwnMistake, isReplaced, storeErrorFor } from './fault.ts';
import { serverFinder } from './find-server.ts';
import { checkRequirements } from './requirements.ts';
import { defineScripts, runScript, type ScriptName } from './scripts.ts';
import type { RedisTarget } from './target.ts';
import { optionsFor } from './target-options.ts';

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

const RECONNECT_MS = { minMs: 50, maxMs: 2_000 };

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
  #at: HostPort | undefined;
  #failures = 0;
  #lastError: unknown;
  #dropped: Redis['stream'] | undefined;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    const { random, target, key, timeoutMs } = options;
    const find = serverFinder(target, { key, timeoutMs, signal: this.#closed.signal });
    this.#redis = new Redis({
      ...this.#redisOptions(async () => {
        this.#at = undefined;
        this.#at = await find();
        return this.#at;
      }),
      retryStrategy: () => backoffMs(++this.#failures, { ...RECONNECT_MS, random }),
    });
    defineScripts(this.#redis);
    this.#redis.on('error', (error) => {
      this.#lastError = error;
    });
    this.#redis.on('ready', () => void this.#greet());
    this.#redis.on('close', () => this.#lost(this.#lastError ?? new Error('Connection is closed')));
  }

  /** Begins, and resolves with the first verdict: `status` is `ready` or `away`. */
  async open(): Promise<void> {
    if (this.status.state !== 'connecting') return;
    await new Promise<void>((resolve) => {
      const stop = this.status.listen(() => {
        stop();
        resolve();
      });
      this.#redis.connect().catch(() => undefined);
    });
  }

  /** Sends and waits for the answer; rejects with a `StoreError` when there is none in time, and with a bug of ours as it is. */
  async call<T>(send: (redis: Redis) => Promise<T>): Promise<T> {
    this.#mustBeReady();
    try {
      return await this.#inTime(send(this.#redis));
    } catch (thrown) {
      if (isOwnMistake(thrown)) throw thrown;
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
  async *dedicated<T>(signal: AbortSignal, use: (redis: Redis) => AsyncIterable<T>): AsyncGenerator<T> {
    if (signal.aborted) return;
    this.#mustBeReady();
    const at = this.#at;
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
      await this.#inTime(redis.connect());
      yield* use(redis);
    } catch (thrown) {
      if (signal.aborted) return;
      if (thrown instanceof StoreError || isOwnMistake(thrown)) throw thrown;
      const error = this.#errorFor(lastError ?? thrown);
      // the calls may only read, and would never be told
      if (isReplaced(thrown) && error.code === 'AWAY') this.#drop(error);
      throw error;
    } finally {
      ending.removeEventListener('abort', end);
      redis.disconnect();
    }
  }

  close(): void {
    this.status.move('closed', undefined);
    this.#closed.abort();
    this.#redis.disconnect();
  }

  /** Connected, and let in: it may be used if it is one that we can rely on. */
  async #greet(): Promise<void> {
    const { log, target, key } = this.#options;
    try {
      // ioredis has asked for it too, but goes on with the first database when this one does not exist
      if (target.db !== 0) await this.#inTime(this.#redis.select(target.db));
      checkRequirements(await this.#inTime(this.#redis.info()), this.#where, target.place.kind);
      if (target.place.kind === 'cluster') await this.#inTime(this.#redis.exists(key));
    } catch (thrown) {
      this.#drop(this.#errorFor(thrown));
      return;
    }
    this.#failures = 0;
    this.#lastError = undefined;
    if (this.status.state === 'closed') return;
    log.info({ redis: this.#where }, 'Redis is ready');
    this.status.move('ready', undefined);
  }

  #mustBeReady(): void {
    const { state, problem } = this.status;
    if (state === 'ready') return;
    if (state === 'closed') throw new StoreError('AWAY', 'the store is closed');
    throw problem ?? new StoreError('AWAY', `Redis at ${this.#where} is not connected yet`);
  }

  /** Ends the connection, and what waits on it; another one is tried. */
  #drop(error: StoreError): void {
    this.#lastError = error;
    this.#lost(error);
    // once for each connection, however many calls have failed on it
    if (this.#dropped === this.#redis.stream) return;
    this.#dropped = this.#redis.stream;
    if (this.#redis.status === 'ready' || this.#redis.status === 'connect') this.#redis.disconnect(true);
  }

  #lost(thrown: unknown): void {
    const { state, problem } = this.status;
    const error = this.#errorFor(thrown);
    // a refusal at the start is thrown to whoever opens the store
    const isTold = state === 'connecting' ? error.code === 'REFUSED' : problem?.code === error.code;
    if (state !== 'closed' && !isTold) this.#options.log.warn({ err: error }, 'Redis is away');
    this.status.move('away', error);
  }

  #errorFor(thrown: unknown): StoreError {
    const where = this.#where;
    const isFound = this.#options.target.place.kind !== 'single';
    if (isFound && isReplaced(thrown)) {
      const message = `Redis at ${where} serves us no longer (${errorMessage(thrown)}); another is looked for`;
      return new StoreError('AWAY', message, { cause: thrown });
    }
    return storeErrorFor(thrown, where);
  }

  /** For people. */
  get #where(): string {
    const { place, shown } = this.#options.target;
    return place.kind === 'single' || this.#at === undefined ? shown : `${formatHostPort(this.#at)} (${shown})`;
  }

  async #inTime<T>(answer: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#options;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const message = `Redis at ${this.#where} has not answered within ${timeoutMs / 1000} s`;
    const timer = clock.setTimeout(() => reject(new StoreError('AWAY', message)), timeoutMs);
    answer.catch(() => undefined);
    try {
      return await Promise.race([answer, late]);
    } finally {
      timer.cancel();
    }
  }

  #redisOptions(find: () => Promise<HostPort>) {
    const { target, timeoutMs } = this.#options;
    // The handshake has a limit of its own; calls have theirs, a little shorter.
    return { ...optionsFor({ ...target, credentials: target, find }, timeoutMs), commandTimeout: timeoutMs + 100 };
  }
}
