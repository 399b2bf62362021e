import assert from 'node:assert/strict';
import type { RoutingTable, TablePosition } from '@weir/model/data-plane';
import type { PublishRequest, PublishResult, Revision, TableMeta, TableSnapshot, TableStore } from '../contract.ts';
import { MAX_CHANGES_PER_REVISION } from '../limits.ts';
import type { RedisCalls } from './connection/redis-connection.ts';
import type { Keys } from './keys.ts';
import type { PrivateKeyJoiner } from './private-key-reader.ts';
import { readPartialTable, readRevisions, readTable, type TableSource } from './read-table.ts';
import { decodeMeta, encodeChanges, META_FIELDS } from './table-codec.ts';

/** How many changes are kept for followers that are behind. */
export interface ChangeRetention {
  readonly revisions: number;
  /** The minimum size in bytes of the kept entries; at most twice as many bytes are kept. */
  readonly bytes: number;
}

export interface RedisTableOptions {
  readonly keys: Keys;
  readonly keyReader: PrivateKeyJoiner;
  readonly retention: ChangeRetention;
}

export class RedisTable implements TableStore {
  readonly #connection: RedisCalls;
  readonly #keys: Keys;
  readonly #keyReader: PrivateKeyJoiner;
  readonly #retention: ChangeRetention;
  /** The highest leader token and epoch that this process has seen. Later values are higher, even if the store was wiped. */
  #highestLeader = 0;
  #highestEpoch = 0;

  constructor(connection: RedisCalls, { keys, keyReader, retention }: RedisTableOptions) {
    this.#connection = connection;
    this.#keys = keys;
    this.#keyReader = keyReader;
    this.#retention = retention;
  }

  async claimLeader(): Promise<number> {
    const leader = Number(await this.#connection.run('claim-leader', [this.#keys.meta], [this.#highestLeader]));
    this.#highestLeader = leader;
    return leader;
  }

  async meta(): Promise<TableMeta | undefined> {
    return this.#recordMeta(
      decodeMeta(await this.#connection.call((redis) => redis.hmget(this.#keys.meta, ...META_FIELDS))),
    );
  }

  async openEpoch({ leader, id }: { readonly leader: number; readonly id: string }): Promise<PublishResult> {
    const reply = await this.#connection.run('open-epoch', this.#scriptKeys, [leader, id, this.#highestEpoch]);
    const [kind, value] = reply as ['published' | 'not-leader', string];
    if (kind === 'not-leader') return this.#notLeader(value);
    this.#highestEpoch = Number(value);
    return { kind, position: { epoch: Number(value), revision: 0, id } };
  }

  async publish({ leader, predecessor, id, changes, complete, changedAt }: PublishRequest): Promise<PublishResult> {
    assert(changes.length <= MAX_CHANGES_PER_REVISION, 'split a larger change into several revisions');
    const reply = await this.#connection.run('publish-table', this.#scriptKeys, [
      leader,
      predecessor.epoch,
      predecessor.revision,
      predecessor.id,
      id,
      complete ? 1 : 0,
      this.#retention.revisions,
      this.#retention.bytes,
      changedAt ?? '',
      ...encodeChanges(changes),
    ]);
    const [kind, ...rest] = reply as [PublishResult['kind'], ...string[]];
    switch (kind) {
      case 'published':
        return { kind, position: { epoch: predecessor.epoch, revision: Number(rest[0]), id } };
      case 'not-leader':
        return this.#notLeader(rest[0]);
      case 'wrong-predecessor':
        return { kind, meta: this.#recordMeta(decodeMeta(rest)) };
    }
  }

  read(): Promise<TableSnapshot | undefined> {
    return readTable(this.#source);
  }

  readPartial(): Promise<RoutingTable | undefined> {
    return readPartialTable(this.#source);
  }

  revisions({ after, signal }: { after: TablePosition; signal: AbortSignal }): AsyncIterable<Revision> {
    return this.#connection.withDedicatedConnection(signal, (redis) => readRevisions(redis, this.#source, after));
  }

  get #source(): TableSource {
    return { connection: this.#connection, keys: this.#keys, keyReader: this.#keyReader };
  }

  /** The KEYS of `open-epoch` and `publish-table`. */
  get #scriptKeys(): readonly string[] {
    const { meta, table, changes, keys } = this.#keys;
    return [meta, table, changes, keys];
  }

  #notLeader(token: string | undefined): PublishResult {
    const leader = Number(token ?? 0);
    this.#highestLeader = Math.max(this.#highestLeader, leader);
    return { kind: 'not-leader', leader };
  }

  #recordMeta(meta: TableMeta | undefined): TableMeta | undefined {
    this.#highestEpoch = Math.max(this.#highestEpoch, meta?.epoch ?? 0);
    this.#highestLeader = Math.max(this.#highestLeader, meta?.leader ?? 0);
    return meta;
  }
}
