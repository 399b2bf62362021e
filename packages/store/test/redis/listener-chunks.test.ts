import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ListenerReport } from '@weir/model';
import type { RedisCalls } from '../../src/redis/connection/redis-connection.ts';
import { chunkListeners, ListenerReportCache } from '../../src/redis/listener-chunks.ts';

describe('chunkListeners', () => {
  test('changes one chunk of about 100 when one of 20,000 listeners changes, comes or goes', () => {
    const listeners = Array.from({ length: 20_000 }, (_, index) => report(index));
    const before = chunkListeners(listeners, undefined);
    assert.equal(before.chunks.flatMap(({ reports }) => reports).length, 20_000);
    assert.ok(
      before.chunks.every(({ reports }) => reports.length < 200),
      'each chunk is near the target size',
    );
    const edits: readonly (readonly ListenerReport[])[] = [
      listeners.with(70, { ...report(70), listening: false }),
      [...listeners, report(20_000)],
      listeners.toSpliced(300, 1),
    ];
    for (const edited of edits) {
      const after = chunkListeners(edited, before);
      const others = after.chunks.filter((chunk, index) => chunk !== before.chunks[index]);
      assert.equal(others.length, 1);
      assert.notEqual(after.root, before.root);
    }
  });

  test('reuses the chunks of equal reports in another list', () => {
    const before = chunkListeners([report(1), report(2)], undefined);
    const after = chunkListeners([report(1), report(2)], before);
    assert.equal(after.root, before.root);
    assert.equal(after.chunks[0], before.chunks[0]);
  });

  test('uses one chunk for no listeners and changes the number of chunks with hysteresis', () => {
    const counts: number[] = [];
    let chunks = chunkListeners([], undefined);
    for (const size of [0, 100, 200, 201, 200, 100, 60, 49, 3_000, 0]) {
      chunks = chunkListeners(
        Array.from({ length: size }, (_, index) => report(index)),
        chunks,
      );
      counts.push(chunks.chunks.length);
    }
    assert.deepEqual(counts, [1, 1, 1, 4, 4, 4, 1, 1, 32, 1]);
  });
});

describe('ListenerReportCache', () => {
  test('does not mix two versions of the reports that change during a read', async () => {
    const [first, other, current] = [hashAt(1), hashAt(2), hashAt(3)];
    const replies: Hash[] = [];
    const cache = new ListenerReportCache(connectionTo(() => replies.shift() ?? current));
    replies.push(first);
    await cache.read('proxy', first.root ?? '');
    replies.push(other, current);
    assert.deepEqual(await cache.read('proxy', current.root ?? ''), [report(3)]);
    replies.push(other, other);
    assert.deepEqual(await cache.read('proxy', other.root ?? ''), [report(2)]);
  });
});

function report(index: number): ListenerReport {
  return { id: `listener/n/10.0.0.1/TCP/${index}`, service: `u${index}`, bound: true, listening: true, error: null };
}

type Hash = Readonly<Record<string, string>>;

/** Returns a test double of a connection. At each call, the proxy's hash is `currentHash()`. */
function connectionTo(currentHash: () => Hash): RedisCalls {
  const redis = {
    hgetall: async () => currentHash(),
    hget: async (_key: string, field: string) => currentHash()[field] ?? null,
    hmget: async (_key: string, ...fields: string[]) => {
      const hash = currentHash();
      return fields.map((field) => hash[field] ?? null);
    },
  };
  const connection = { call: (ask: (client: typeof redis) => unknown) => ask(redis) };
  return connection as unknown as RedisCalls;
}

function hashAt(index: number): Hash {
  const { root, chunks } = chunkListeners([report(index)], undefined);
  const [chunk] = chunks;
  return { root, digests: JSON.stringify(chunks.map(({ digest }) => digest)), 'chunk:0': chunk?.text ?? '' };
}
