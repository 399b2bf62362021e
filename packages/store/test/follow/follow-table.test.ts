import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { apply, type Change, type RoutingTable, type TablePosition } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import type { Revision, TableStore } from '../../src/contract.ts';
import type { StoreError } from '../../src/errors.ts';
import { type FollowTableOptions, followTable } from '../../src/follow/follow-table.ts';
import { MemoryStore } from '../../src/memory/memory-store.ts';
import {
  contentOf,
  contentOfEntries,
  entry,
  newId,
  openEpochAsLeader,
  publish,
  put,
  remove,
} from '../contract/sample-data.ts';

describe('followTable', () => {
  test('reports the complete table, then each change with the resulting table', async (t) => {
    const store = new MemoryStore();
    const { leader, position: opened } = await openEpochAsLeader(store);
    const first = await publish(store, { leader, predecessor: opened, changes: [put('a')] });
    const follower = follow(t, store.table);
    await follower.settled();
    const second = await publish(store, { leader, predecessor: first, changes: [put('b'), remove('a')] });
    await follower.settled();
    assert.deepEqual(follower.events, [
      { kind: 'table', content: contentOfEntries(entry('a')), position: first },
      { kind: 'changes', changes: [put('b'), remove('a')], content: contentOfEntries(entry('b')), position: second },
    ]);
  });

  test('reports the revisions of one change together when the table is complete', async (t) => {
    const store = new MemoryStore();
    const { leader, position: opened } = await openEpochAsLeader(store);
    const whole = await publish(store, { leader, predecessor: opened, changes: [put('a')] });
    const follower = follow(t, store.table);
    await follower.settled();
    const part = await publish(store, { leader, predecessor: whole, changes: [put('a', 1)], complete: false });
    await follower.settled();
    assert.equal(follower.events.length, 1);
    const last = await publish(store, { leader, predecessor: part, changes: [put('b', 1)] });
    await follower.settled();
    assert.deepEqual(follower.events.at(-1), {
      kind: 'changes',
      changes: [put('a', 1), put('b', 1)],
      content: contentOfEntries(entry('a', 1), entry('b', 1)),
      position: last,
    });
  });

  test('reports changedAt with a change, but not after a read of the table', async (t) => {
    const store = new MemoryStore();
    const { leader, position: opened } = await openEpochAsLeader(store);
    const first = await publish(store, { leader, predecessor: opened, changes: [put('a')], changedAt: 1 });
    const follower = follow(t, store.table);
    await follower.settled();
    const part = { leader, predecessor: first, changes: [put('a', 1)], complete: false, changedAt: 2 };
    const half = await publish(store, part);
    await publish(store, { leader, predecessor: half, changes: [put('b', 1)], changedAt: 2 });
    await follower.settled();
    const next = await store.table.openEpoch({ leader, id: newId() });
    assert.ok(next.kind === 'published');
    await publish(store, { leader, predecessor: next.position, changes: [put('c')], changedAt: 3 });
    await follower.clock.advance(2_000);
    assert.deepEqual(
      follower.events.map((each) => (typeof each === 'object' && 'changedAt' in each ? each.changedAt : 'unknown')),
      ['unknown', 2, 'unknown'],
    );
  });

  test('reports unreachable until the first complete table', async (t) => {
    const store = new MemoryStore();
    const follower = follow(t, store.table);
    await follower.settled();
    assert.deepEqual(follower.events, ['away']);
    const { leader, position: opened } = await openEpochAsLeader(store);
    await publish(store, { leader, predecessor: opened, changes: [put('a')] });
    await follower.clock.advance(2_000);
    assert.deepEqual(
      follower.events.map((each) => (typeof each === 'string' ? each : each.kind)),
      ['away', 'back', 'table'],
    );
  });

  test('keeps its table through a wipe and reports only differences to the next table', async (t) => {
    const store = new MemoryStore();
    const { leader, position: opened } = await openEpochAsLeader(store);
    await publish(store, { leader, predecessor: opened, changes: [put('a'), put('b'), put('c')] });
    const follower = follow(t, store.table);
    await follower.settled();
    store.faults.wipe();
    await follower.clock.advance(60_000);
    assert.deepEqual(follower.events.slice(1), ['away']);
    const again = await openEpochAsLeader(store);
    const part = await publish(store, {
      leader: again.leader,
      predecessor: again.position,
      changes: [put('a')],
      complete: false,
    });
    await follower.clock.advance(60_000);
    assert.deepEqual(follower.events.slice(1), ['away']);
    const position = await publish(store, {
      leader: again.leader,
      predecessor: part,
      changes: [put('b'), put('c', 1), put('d')],
    });
    await follower.clock.advance(2_000);
    assert.deepEqual(follower.events.slice(1), [
      'away',
      'back',
      {
        kind: 'changes',
        changes: [put('c', 1), put('d')],
        content: contentOfEntries(entry('a'), entry('b'), entry('c', 1), entry('d')),
        position,
      },
    ]);
  });

  test('reports an equal table at another position without changes', async (t) => {
    const store = new MemoryStore();
    const { leader, position: opened } = await openEpochAsLeader(store);
    await publish(store, { leader, predecessor: opened, changes: [put('a')] });
    const follower = follow(t, store.table);
    await follower.settled();
    const next = await store.table.openEpoch({ leader, id: newId() });
    assert.ok(next.kind === 'published');
    const position = await publish(store, { leader, predecessor: next.position, changes: [put('a')] });
    await follower.clock.advance(2_000);
    assert.deepEqual(follower.events.slice(1), [
      { kind: 'changes', changes: [], content: contentOfEntries(entry('a')), position },
    ]);
  });

  test('continues from a known table without reading the table', async (t) => {
    const store = new MemoryStore();
    const { leader, position: opened } = await openEpochAsLeader(store);
    const position = await publish(store, { leader, predecessor: opened, changes: [put('a')] });
    const next = await publish(store, { leader, predecessor: position, changes: [put('b')] });
    const table: RoutingTable = { entries: new Map([['node/a', entry('a')]]) };
    const withoutRead = Object.assign(Object.create(store.table) as TableStore, {
      meta: () => store.table.meta(),
      revisions: (options: Parameters<TableStore['revisions']>[0]) => store.table.revisions(options),
      read: () => assert.fail('the table was read'),
    });
    const follower = follow(t, withoutRead, { from: { table, position } });
    await follower.settled();
    assert.deepEqual(follower.events, [
      { kind: 'changes', changes: [put('b')], content: contentOfEntries(entry('a'), entry('b')), position: next },
    ]);
  });

  test('starts from a known table during an outage and catches up afterwards', async (t) => {
    const store = new MemoryStore();
    const { leader, position: opened } = await openEpochAsLeader(store);
    const position = await publish(store, { leader, predecessor: opened, changes: [put('b')] });
    store.faults.goAway();
    const table: RoutingTable = { entries: new Map([['node/a', entry('a')]]) };
    const follower = follow(t, store.table, { from: { table, position: { epoch: 9, revision: 9, id: 'old' } } });
    await follower.clock.advance(10_000);
    assert.deepEqual(follower.events, ['away']);
    store.faults.comeBack();
    await follower.clock.advance(2_000);
    assert.deepEqual(follower.events, [
      'away',
      'back',
      { kind: 'changes', changes: [remove('a'), put('b')], content: contentOfEntries(entry('b')), position },
    ]);
  });

  test('keeps the known entry if a newer version wrote an unreadable entry', async (t) => {
    const store = new MemoryStore();
    const { leader, position: opened } = await openEpochAsLeader(store);
    const position = await publish(store, { leader, predecessor: opened, changes: [put('a'), put('b')] });
    const unreadable: string[] = [];
    const { promise: broken, resolve: breakOff } = Promise.withResolvers<void>();
    const newer: Revision = {
      position: { ...position, revision: position.revision + 1, id: 'newer' },
      predecessor: position.id,
      complete: true,
      changes: [put('b', 1)],
      unreadable: ['node/a'],
    };
    let reads = 0;
    const table: TableStore = Object.assign(Object.create(store.table) as TableStore, {
      read: async () => {
        reads += 1;
        if (reads === 1) return store.table.read();
        const entries = new Map([['node/b', entry('b', 2)]]);
        return { table: { entries }, position: { epoch: 5, revision: 1, id: 'x' }, unreadable: ['node/a'] };
      },
      async *revisions({ signal }: { signal: AbortSignal }) {
        if (reads === 1) {
          yield newer;
          yield newer;
        }
        if (!signal.aborted) await broken;
      },
    });
    const follower = follow(t, table, { onUnreadable: (ids) => void unreadable.push(...ids) });
    await follower.settled();
    breakOff();
    assert.deepEqual(follower.contents(), [
      contentOfEntries(entry('a'), entry('b')),
      contentOfEntries(entry('a'), entry('b', 1)),
      contentOfEntries(entry('a'), entry('b', 2)),
    ]);
    assert.deepEqual(unreadable, ['node/a', 'node/a', 'node/a']);
  });

  test('ends when the signal aborts in any state and leaves no timer', async (t) => {
    const store = new MemoryStore();
    for (const prepare of [
      async () => undefined,
      async () => store.faults.goAway(),
      async () => {
        store.faults.comeBack();
        const { leader, position: predecessor } = await openEpochAsLeader(store);
        await publish(store, { leader, predecessor, changes: [] });
      },
    ]) {
      await prepare();
      const follower = follow(t, store.table);
      await follower.settled();
      await follower.stop();
      assert.equal(follower.clock.pendingTimers, 0);
    }
  });

  test('rejects with the error of a callback', async () => {
    const store = new MemoryStore();
    const { leader, position: predecessor } = await openEpochAsLeader(store);
    await publish(store, { leader, predecessor, changes: [] });
    const { signal } = new AbortController();
    const onTable = (): never => assert.fail('broken listener');
    await assert.rejects(followTable(store.table, { signal, onTable, onChanges: onTable }), /broken listener/);
  });
});

type FollowEvent =
  | 'away'
  | 'back'
  | { kind: 'table'; content: object; position: TablePosition }
  | { kind: 'changes'; changes: readonly Change[]; content: object; position: TablePosition; changedAt?: number };

interface Follower {
  readonly events: FollowEvent[];
  readonly clock: ManualClock;
  contents(): object[];
  /** Resolves when nothing more can happen until the clock advances. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

function follow(t: TestContext, store: TableStore, options: Partial<FollowTableOptions> = {}): Follower {
  const clock = new ManualClock();
  const stopped = new AbortController();
  const events: FollowEvent[] = [];
  let last: RoutingTable | undefined = options.from?.table;
  const done = followTable(store, {
    signal: stopped.signal,
    clock,
    onTable(table, position) {
      assert.equal(last, undefined);
      last = table;
      events.push({ kind: 'table', content: contentOf(table), position });
    },
    onChanges(changes, table, { position, changedAt }) {
      assert.ok(last !== undefined);
      assert.deepEqual(contentOf(apply(last, changes)), contentOf(table));
      last = table;
      const known = changedAt === undefined ? {} : { changedAt };
      events.push({ kind: 'changes', changes, content: contentOf(table), position, ...known });
    },
    onAway: (_error: StoreError) => void events.push('away'),
    onBack: () => void events.push('back'),
    ...options,
  });
  const stop = async (): Promise<void> => {
    stopped.abort();
    await done;
  };
  t.after(stop);
  return {
    events,
    clock,
    contents: () => events.flatMap((each) => (typeof each === 'string' ? [] : [each.content])),
    settled: () => clock.advance(0),
    stop,
  };
}
