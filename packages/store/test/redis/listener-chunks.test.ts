import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ListenerReport } from '@weir/model';
import type { RedisConnection } from '../../src/redis/connection/redis-connection.ts';
import { chunkListeners, ListenerReportCache } from '../../src/redis/listener-chunks.ts';

test('of 20,000 listeners one that changes, comes or goes is another chunk of some 100, and the others stay', () => {
  const listeners = Array.from({ length: 20_000 }, (_, index) => report(index));
  const before = chunkListeners(listeners, undefined);
  assert.equal(before.chunks.flatMap(({ reports }) => reports).length, 20_000);
  assert.ok(
    before.chunks.every(({ reports }) => reports.length < 200),
    'chunks are of about the wanted size',
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

test('the same reports in another list are the same chunks', () => {
  const before = chunkListeners([report(1), report(2)], undefined);
  const after = chunkListeners([report(1), report(2)], before);
  assert.equal(after.root, before.root);
  assert.equal(after.chunks[0], before.chunks[0]);
});

test('no listeners are one empty chunk, and the number of chunks follows their number without flapping', () => {
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

function report(index: number): ListenerReport {
  return { id: `listener/n/10.0.0.1/TCP/${index}`, service: `u${index}`, bound: true, listening: true, error: null };
}

type Hash = Readonly<Record<string, string>>;

test('a proxy that says something else only while it is read is not taken for saying both at once', async () => {
  const [first, other, now] = [hashAt(1), hashAt(2), hashAt(3)];
  const asked: Hash[] = [];
  const heard = new ListenerReportCache(connectionTo(() => asked.shift() ?? now));
  asked.push(first);
  await heard.read('proxy', first.root ?? '');
  asked.push(other, now);
  assert.deepEqual(await heard.read('proxy', now.root ?? ''), [reportAt(3)]);
  asked.push(other, other);
  assert.deepEqual(await heard.read('proxy', other.root ?? ''), [reportAt(2)]);
});

/** A Redis in which a proxy says at each call what `saidNow` gives. */
function connectionTo(saidNow: () => Hash): RedisConnection {
  const redis = {
    hgetall: async () => saidNow(),
    hget: async (_key: string, field: string) => saidNow()[field] ?? null,
    hmget: async (_key: string, ...fields: string[]) => {
      const hash = saidNow();
      return fields.map((field) => hash[field] ?? null);
    },
  };
  const connection = { call: (ask: (client: typeof redis) => unknown) => ask(redis) };
  return connection as unknown as RedisConnection;
}

function hashAt(index: number): Hash {
  const { root, chunks } = chunkListeners([reportAt(index)], undefined);
  const [chunk] = chunks;
  return { root, digests: JSON.stringify(chunks.map(({ digest }) => digest)), 'chunk:0': chunk?.text ?? '' };
}

function reportAt(index: number): ListenerReport {
  return { id: `listener/n/10.0.0.1/TCP/${index}`, service: `u${index}`, bound: true, listening: true, error: null };
}
