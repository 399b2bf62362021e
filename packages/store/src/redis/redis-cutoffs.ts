import { randomUUID } from 'node:crypto';
import type { Cutoff } from '@weir/model/data-plane';
import type { Redis } from 'ioredis';
import type { CutoffState, CutoffStore } from '../contract.ts';
import { decodeCutoff, encodeCutoff } from '../cutoff-codec.ts';
import type { RedisConnection } from './connection.ts';
import type { Keys } from './keys.ts';
import { atOnce } from './transaction.ts';

/** The stream only wakes those who wait: whoever is late reads the state anyway. */
const KEPT_CHANGES = 100;
/** How often one to whom nothing comes looks whether the store was rolled back. */
const LOOK_MS = 500;

export class RedisCutoffs implements CutoffStore {
  readonly #connection: RedisConnection;
  readonly #keys: Keys;
  /** The sequence goes on after a wipe, as far as this process knows it. */
  #highest = 0;

  constructor(connection: RedisConnection, keys: Keys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async put(cutoff: Cutoff): Promise<void> {
    const { cutoffs, cutoffsRemoved, cutoffMeta, cutoffChanges } = this.#keys;
    const args = [cutoff.uid, encodeCutoff(cutoff), randomUUID(), this.#highest, KEPT_CHANGES];
    this.#wrote(await this.#connection.run('put-cutoff', [cutoffs, cutoffsRemoved, cutoffMeta, cutoffChanges], args));
  }

  async remove(uid: string): Promise<void> {
    const { cutoffs, cutoffsRemoved, cutoffMeta, cutoffChanges } = this.#keys;
    const args = [uid, randomUUID(), this.#highest, KEPT_CHANGES];
    this.#wrote(
      await this.#connection.run('remove-cutoff', [cutoffs, cutoffsRemoved, cutoffMeta, cutoffChanges], args),
    );
  }

  async complete(): Promise<void> {
    const { cutoffsRemoved, cutoffMeta, cutoffChanges } = this.#keys;
    const args = [randomUUID(), this.#highest, KEPT_CHANGES];
    this.#wrote(await this.#connection.run('complete-cutoffs', [cutoffsRemoved, cutoffMeta, cutoffChanges], args));
  }

  async read(): Promise<CutoffState> {
    return (await this.#connection.call((redis) => this.#look(redis))).state;
  }

  watch(signal: AbortSignal): AsyncIterable<CutoffState> {
    return this.#connection.dedicated(signal, (redis) => this.#states(redis));
  }

  async *#states(redis: Redis): AsyncGenerator<CutoffState> {
    let given: string | undefined;
    for (;;) {
      const { state, id } = await this.#look(redis);
      // the number alone does not tell of a store that was rolled back and changed since
      if (given !== `${state.sequence}/${id}`) {
        given = `${state.sequence}/${id}`;
        yield state;
      }
      const after = `${state.sequence}-0`;
      await redis.xread('COUNT', 1, 'BLOCK', LOOK_MS, 'STREAMS', this.#keys.cutoffChanges, after);
    }
  }

  async #look(redis: Redis): Promise<{ state: CutoffState; id: string | null }> {
    const answers = await atOnce(redis, (all) =>
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
    const cutoffs = Object.values(listed).map(decodeCutoff);
    const readable = cutoffs.filter((cutoff) => cutoff !== undefined);
    this.#highest = Math.max(this.#highest, Number(sequence ?? 0));
    const state: CutoffState = {
      sequence: Number(sequence ?? 0),
      // one that only a newer version can read must not be lifted by those that cannot: absence means nothing then
      complete: complete !== null && readable.length === cutoffs.length,
      cutoffs: readable.sort((a, b) => (a.uid < b.uid ? -1 : 1)),
      removed: removed.sort(),
    };
    return { state, id };
  }

  #wrote(sequence: unknown): void {
    this.#highest = Math.max(this.#highest, Number(sequence));
  }
}
