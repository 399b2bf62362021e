// Checks that the table is read in pages of about a megabyte, because every page must arrive within the time limit of one command.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type NodeEntry, tableOf } from '@weir/model';
import { requireProgram } from '@weir/tools';
import { TablePublisher } from '../../src/publish/table-publisher.ts';
import { PAGE_BYTES, PageSize } from '../../src/redis/page-size.ts';
import { entry } from '../contract/sample-data.ts';
import { useSharedRedis } from './fixtures/shared-redis.ts';

const ENTRIES = 80;
const ENTRY_BYTES = 400_000;

describe('a table with large entries', requireProgram('redis'), () => {
  const { redis, fixture } = useSharedRedis();

  /** Returns how often Redis has run a command since the last `CONFIG RESETSTAT`. */
  const callsOf = async (command: string): Promise<number> =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await redis().info('commandstats'))?.[1] ?? 0);
  const large = (index: number, fill: string): NodeEntry => {
    const small = entry(`n${index}`) as NodeEntry;
    return { ...small, zone: fill.repeat(ENTRY_BYTES) };
  };

  test('is read in pages of about a megabyte, also the changes that follow', async () => {
    await using world = fixture();
    const [store, reader] = [await world.connect(), await world.connect()];
    const publisher = new TablePublisher({ store: store.table });
    await publisher.becomeLeader();
    const indices = Array.from({ length: ENTRIES }, (_, index) => index);
    const first = tableOf(indices.map((index) => large(index, 'a')));
    await publisher.publish(first);
    await redis().config('RESETSTAT');
    const snapshot = await reader.table.read();
    assert.equal(snapshot?.table.entries.size, ENTRIES);
    const minPages = (ENTRIES * ENTRY_BYTES) / (4 * PAGE_BYTES);
    const pages = await callsOf('hscan');
    assert.ok(pages >= minPages, `${pages} pages for ${(ENTRIES * ENTRY_BYTES) / 1e6} MB`);

    await publisher.publish(tableOf(indices.map((index) => large(index, 'b'))));
    await redis().config('RESETSTAT');
    const stopped = new AbortController();
    let changed = 0;
    for await (const revision of reader.table.revisions({
      after: snapshot?.position ?? assert.fail('no position'),
      signal: stopped.signal,
    })) {
      changed += revision.changes.length;
      if (changed === ENTRIES) stopped.abort();
    }
    const reads = (await callsOf('xrange')) + (await callsOf('xread'));
    assert.ok(reads >= 5, `${reads} reads of changes`);
  });
});

test('a page grows to the size of a page, and shrinks at once when items are large', () => {
  const page = new PageSize({ first: 50, max: 1_000 });
  page.adapt({ items: 50, bytes: 50 * 100 });
  assert.equal(page.count, 100);
  for (let count = 0; count < 10; count += 1) page.adapt({ items: page.count, bytes: page.count * 100 });
  assert.equal(page.count, 1_000);
  page.adapt({ items: 1_000, bytes: 500 * PAGE_BYTES });
  assert.equal(page.count, 2);
  page.adapt({ items: 1, bytes: 5 * PAGE_BYTES });
  assert.equal(page.count, 1);
  page.adapt({ items: 0, bytes: 0 });
  assert.equal(page.count, 1);
});
