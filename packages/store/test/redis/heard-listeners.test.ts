import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ListenerReport } from '@weir/model';
import type { RedisConnection } from '../../src/redis/connection.ts';
import { ListenerReportCache } from '../../src/redis/heard-listeners.ts';
import { chunkListeners } from '../../src/redis/listener-chunks.ts';

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
