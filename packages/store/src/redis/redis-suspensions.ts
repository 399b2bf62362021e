import { randomUUID } from 'node:crypto';
import type { Suspension } from '@weir/model/data-plane';
import type { Redis } from 'ioredis';
import type { SuspensionAuditRecord, SuspensionRelease, SuspensionState, SuspensionStore } from '../contract.ts';
import { AUDIT_PAGE_SIZE, AUDIT_RETENTION_MS, MAX_AUDIT_RECORDS } from '../limits.ts';
import { decodeRelease, decodeSuspension, encodeSuspension } from '../suspension-codec.ts';
import type { RedisCalls } from './connection/redis-connection.ts';
import { readTogether } from './connection/scripts.ts';
import type { Keys } from './keys.ts';

/**
 * The number of stream entries that are kept. Watchers need no old entries, because an entry only wakes a watcher, and a woken watcher
 * reads the complete state.
 */
const MAX_KEPT_CHANGES = 100;
/** How long a watcher waits for a change before checking whether the store was rolled back. */
const POLL_INTERVAL_MS = 500;

const AUDIT_BOUNDS = [AUDIT_RETENTION_MS, MAX_AUDIT_RECORDS] as const;

export class RedisSuspensions implements SuspensionStore {
  readonly #connection: RedisCalls;
  readonly #keys: Keys;
  /** The highest sequence that this process has seen. Later sequences are higher, even if the store was wiped. */
  #highestSequence = 0;

  constructor(connection: RedisCalls, keys: Keys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async put(suspension: Suspension, adopts = ''): Promise<void> {
    const { cutoffs, cutoffSequences, cutoffMeta, cutoffChanges, cutoffAudit } = this.#keys;
    const change = [randomUUID(), this.#highestSequence, MAX_KEPT_CHANGES];
    const args = [suspension.uid, encodeSuspension(suspension), ...change, adopts, ...AUDIT_BOUNDS];
    const keys = [cutoffs, cutoffSequences, cutoffMeta, cutoffChanges, cutoffAudit];
    this.#recordSequence(await this.#connection.run('put-cutoff', keys, args));
  }

  async remove(uid: string, release?: SuspensionRelease): Promise<void> {
    const { cutoffs, cutoffSequences, cutoffMeta, cutoffChanges, cutoffAudit } = this.#keys;
    const recorded = release === undefined ? ['', '', ''] : auditArgsFor(release);
    const change = [randomUUID(), this.#highestSequence, MAX_KEPT_CHANGES];
    const keys = [cutoffs, cutoffSequences, cutoffMeta, cutoffChanges, cutoffAudit];
    this.#recordSequence(
      await this.#connection.run('remove-cutoff', keys, [uid, ...change, ...recorded, ...AUDIT_BOUNDS]),
    );
  }

  async audit(before?: string): Promise<readonly SuspensionAuditRecord[]> {
    const end = before === undefined ? '+' : `(${before}`;
    const entries = await this.#connection.call((redis) =>
      redis.xrevrange(this.#keys.cutoffAudit, end, '-', 'COUNT', AUDIT_PAGE_SIZE),
    );
    return entries.map(decodeAuditEntry).filter((record) => record !== undefined);
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
    const replies = await readTogether(redis, [
      ['HMGET', this.#keys.cutoffMeta, 'sequence', 'id', 'complete'],
      ['HGETALL', this.#keys.cutoffs],
      ['HGETALL', this.#keys.cutoffSequences],
    ]);
    const [[sequence, id, complete], cutoffs, cutoffSequences] = replies as [
      [string | null, string | null, string | null],
      readonly string[],
      readonly string[],
    ];
    const [listed, sequences] = [hashOf(cutoffs), hashOf(cutoffSequences)];
    const suspensions = [...listed.values()].map(decodeSuspension);
    const readable = suspensions.filter((suspension) => suspension !== undefined);
    const readableUids = new Set(readable.map(({ uid }) => uid));
    // A suspension that cannot be decoded must not count as removed, because a newer version wrote it.
    const isUnreadable = (uid: string): boolean => listed.has(uid) && !readableUids.has(uid);
    const changes = [...sequences].filter(([uid]) => !isUnreadable(uid));
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

/** Returns a hash by field. Redis sends a hash as a list of fields and values. */
function hashOf(reply: readonly string[]): Map<string, string> {
  const hash = new Map<string, string>();
  for (let index = 0; index + 1 < reply.length; index += 2) hash.set(reply[index] ?? '', reply[index + 1] ?? '');
  return hash;
}

function auditArgsFor({ suspension, why, by }: SuspensionRelease): readonly string[] {
  const release = JSON.stringify({ why, ...(by === undefined ? {} : { by }) });
  return [encodeSuspension(suspension), release, by === undefined ? '0' : '1'];
}

/** Decodes an entry of the audit stream. Returns undefined if a newer version wrote the entry. */
function decodeAuditEntry([id, fields]: [id: string, fields: string[]]): SuspensionAuditRecord | undefined {
  const field = (name: string): string => fields[fields.indexOf(name) + 1] ?? '';
  const suspension = decodeSuspension(field('suspension'));
  const release = decodeRelease(field('release'));
  if (suspension === undefined || release === undefined) return undefined;
  return { id, at: Number(id.split('-')[0]), suspension, release };
}
