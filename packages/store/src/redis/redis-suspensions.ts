import { randomUUID } from 'node:crypto';
import type { Suspension } from '@weir/model/data-plane';
import type { Redis } from 'ioredis';
import type { SuspensionState, SuspensionStore } from '../contract.ts';
import { decodeSuspension, encodeSuspension } from '../suspension-codec.ts';
import { runTransaction } from './connection/pipeline.ts';
import type { RedisConnection } from './connection/redis-connection.ts';
import type { Keys } from './keys.ts';

/** The stream only wakes those who wait: whoever is late reads the state anyway. */
const MAX_KEPT_CHANGES = 100;
/** How often one to whom nothing comes looks whether the store was rolled back. */
const POLL_INTERVAL_MS = 500;

export class RedisSuspensions implements SuspensionStore {
  readonly #connection: RedisConnection;
  readonly #keys: Keys;
  /** The sequence goes on after a wipe, as far as this process knows it. */
  #highestSequence = 0;

  constructor(connection: RedisConnection, keys: Keys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async put(cutoff: Suspension): Promise<void> {
    const { cutoffs, cutoffsRemoved, cutoffMeta, cutoffChanges } = this.#keys;
    const args = [cutoff.uid, encodeSuspension(cutoff), randomUUID(), this.#highestSequence, MAX_KEPT_CHANGES];
    this.#recordSequence(
      await this.#connection.run('put-cutoff', [cutoffs, cutoffsRemoved, cutoffMeta, cutoffChanges], args),
    );
  }

  async remove(uid: string): Promise<void> {
    const { cutoffs, cutoffsRemoved, cutoffMeta, cutoffChanges } = this.#keys;
    const args = [uid, randomUUID(), this.#highestSequence, MAX_KEPT_CHANGES];
    this.#recordSequence(
      await this.#connection.run('remove-cutoff', [cutoffs, cutoffsRemoved, cutoffMeta, cutoffChanges], args),
    );
  }

  async markComplete(): Promise<void> {
    const { cutoffsRemoved, cutoffMeta, cutoffChanges } = this.#keys;
    const args = [randomUUID(), this.#highestSequence, MAX_KEPT_CHANGES];
    this.#recordSequence(
      await this.#connection.run('complete-cutoffs', [cutoffsRemoved, cutoffMeta, cutoffChanges], args),
    );
  }

  async read(): Promise<SuspensionState> {
    return (await this.#connection.call((redis) => this.#readState(redis))).state;
  }

  watch(signal: AbortSignal): AsyncIterable<SuspensionState> {
    return this.#connection.withDedicatedConnection(signal, (redis) => this.#watchStates(redis));
  }

  async *#watchStates(redis: Redis): AsyncGenerator<SuspensionState> {
    let given: string | undefined;
    for (;;) {
      const { state, id } = await this.#readState(redis);
      // the number alone does not tell of a store that was rolled back and changed since
      if (given !== `${state.sequence}/${id}`) {
        given = `${state.sequence}/${id}`;
        yield state;
      }
      const after = `${state.sequence}-0`;
      await redis.xread('COUNT', 1, 'BLOCK', POLL_INTERVAL_MS, 'STREAMS', this.#keys.cutoffChanges, after);
    }
  }

  async #readState(redis: Redis): Promise<{ state: SuspensionState; id: string | null }> {
    const answers = await runTransaction(redis, (all) =>
      all
        .hmget(this.#keys.cutoffMeta, 'sequence', 'id', 'complete')
        .hgetall(this.#keys.cutoffs)
        .smembers(this.#keys.cutoffsRemoved),
    );
    const [[sequence, id, complete], listed, removed] = answers as [
      [string | null, string | null, string | null],
      Record<string, string>,
      string[],
    ];
    const cutoffs = Object.values(listed).map(decodeSuspension);
    const readable = cutoffs.filter((cutoff) => cutoff !== undefined);
    this.#highestSequence = Math.max(this.#highestSequence, Number(sequence ?? 0));
    const state: SuspensionState = {
      sequence: Number(sequence ?? 0),
      // one that only a newer version can read must not be lifted by those that cannot: absence means nothing then
      complete: complete !== null && readable.length === cutoffs.length,
      suspensions: readable.sort((a, b) => (a.uid < b.uid ? -1 : 1)),
      removed: removed.sort(),
    };
    return { state, id };
  }

  #recordSequence(sequence: unknown): void {
    this.#highestSequence = Math.max(this.#highestSequence, Number(sequence));
  }
}
