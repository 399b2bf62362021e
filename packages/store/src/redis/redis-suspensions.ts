import { randomUUID } from 'node:crypto';
import type { Suspension } from '@weir/model/data-plane';
import type { Redis } from 'ioredis';
import type { SuspensionState, SuspensionStore } from '../contract.ts';
import { decodeSuspension, encodeSuspension } from '../suspension-codec.ts';
import { runTransaction } from './connection/pipeline.ts';
import type { RedisConnection } from './connection/redis-connection.ts';
import type { Keys } from './keys.ts';

/**
 * The number of stream entries that are kept. Watchers need no old entries, because an entry only wakes a watcher, and a woken watcher
 * reads the complete state.
 */
const MAX_KEPT_CHANGES = 100;
/** How long a watcher waits for a change before checking whether the store was rolled back. */
const POLL_INTERVAL_MS = 500;

export class RedisSuspensions implements SuspensionStore {
  readonly #connection: RedisConnection;
  readonly #keys: Keys;
  /** The highest sequence that this process has seen. Later sequences are higher, even if the store was wiped. */
  #highestSequence = 0;

  constructor(connection: RedisConnection, keys: Keys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async put(suspension: Suspension): Promise<void> {
    const { cutoffs, cutoffSequences, cutoffMeta, cutoffChanges } = this.#keys;
    const args = [suspension.uid, encodeSuspension(suspension), randomUUID(), this.#highestSequence, MAX_KEPT_CHANGES];
    this.#recordSequence(
      await this.#connection.run('put-cutoff', [cutoffs, cutoffSequences, cutoffMeta, cutoffChanges], args),
    );
  }

  async remove(uid: string): Promise<void> {
    const { cutoffs, cutoffSequences, cutoffMeta, cutoffChanges } = this.#keys;
    const args = [uid, randomUUID(), this.#highestSequence, MAX_KEPT_CHANGES];
    this.#recordSequence(
      await this.#connection.run('remove-cutoff', [cutoffs, cutoffSequences, cutoffMeta, cutoffChanges], args),
    );
  }

  async markComplete(known = 0): Promise<void> {
    this.#recordSequence(known);
    const { cutoffs, cutoffSequences, cutoffMeta, cutoffChanges } = this.#keys;
    const args = [randomUUID(), this.#highestSequence, MAX_KEPT_CHANGES];
    this.#recordSequence(
      await this.#connection.run('complete-cutoffs', [cutoffs, cutoffSequences, cutoffMeta, cutoffChanges], args),
    );
  }

  async read(): Promise<SuspensionState> {
    return (await this.#connection.call((redis) => this.#readState(redis))).state;
  }

  watch(signal: AbortSignal): AsyncIterable<SuspensionState> {
    return this.#connection.withDedicatedConnection(signal, (redis) => this.#watchStates(redis));
  }

  async *#watchStates(redis: Redis): AsyncGenerator<SuspensionState> {
    let lastYielded: string | undefined;
    for (;;) {
      const { state, id } = await this.#readState(redis);
      // The random id reveals a store that was rolled back and reached the same sequence with other changes.
      const version = `${state.sequence}/${id}`;
      if (lastYielded !== version) {
        lastYielded = version;
        yield state;
      }
      const after = `${state.sequence}-0`;
      await redis.xread('COUNT', 1, 'BLOCK', POLL_INTERVAL_MS, 'STREAMS', this.#keys.cutoffChanges, after);
    }
  }

  async #readState(redis: Redis): Promise<{ state: SuspensionState; id: string | null }> {
    const replies = await runTransaction(redis, (all) =>
      all
        .hmget(this.#keys.cutoffMeta, 'sequence', 'id', 'complete')
        .hgetall(this.#keys.cutoffs)
        .hgetall(this.#keys.cutoffSequences),
    );
    const [[sequence, id, complete], listed, sequences] = replies as [
      [string | null, string | null, string | null],
      Record<string, string>,
      Record<string, string>,
    ];
    const suspensions = Object.values(listed).map(decodeSuspension);
    const readable = suspensions.filter((suspension) => suspension !== undefined);
    const readableUids = new Set(readable.map(({ uid }) => uid));
    // A suspension that cannot be decoded must not count as removed, because a newer version wrote it.
    const isUnreadable = (uid: string): boolean => Object.hasOwn(listed, uid) && !readableUids.has(uid);
    const changes = Object.entries(sequences).filter(([uid]) => !isUnreadable(uid));
    this.#highestSequence = Math.max(this.#highestSequence, Number(sequence ?? 0));
    const state: SuspensionState = {
      sequence: Number(sequence ?? 0),
      // A list with a suspension that cannot be decoded does not count as complete, because this version must not lift the suspension.
      completeSince: complete === null || readable.length < suspensions.length ? null : Number(complete),
      suspensions: readable.sort((a, b) => (a.uid < b.uid ? -1 : 1)),
      changes: new Map(changes.map(([uid, changedAt]) => [uid, Number(changedAt)])),
    };
    return { state, id };
  }

  #recordSequence(sequence: unknown): void {
    this.#highestSequence = Math.max(this.#highestSequence, Number(sequence));
  }
}
