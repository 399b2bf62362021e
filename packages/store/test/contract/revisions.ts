import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { TablePosition } from '@weir/model';
import type { Revision, Store } from '../../src/contract.ts';
import { StoreError } from '../../src/errors.ts';
import { openEpochAsLeader, publish, put, remove } from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

export function revisionsContract(subject: StoreUnderTest): void {
  describe(`the revisions of ${subject.name}`, () => {
    test('arrive in order at every follower: the stored revisions, then each new revision', async (t) => {
      await using world = await subject.open();
      const [leading, a, b] = [await world.connect(), await world.connect(), await world.connect()];
      const { leader, position: opened } = await openEpochAsLeader(leading);
      const first = await publish(leading, { leader, predecessor: opened, changes: [put('a')], complete: false });
      const second = await publish(leading, { leader, predecessor: first, changes: [put('b'), remove('a')] });
      const followers = [follow(t, a, opened), follow(t, b, first)] as const;
      const expected = [
        { position: first, predecessor: opened.id, complete: false, changes: [put('a')], unreadable: [] },
        { position: second, predecessor: first.id, complete: true, changes: [put('b'), remove('a')], unreadable: [] },
      ];
      assert.deepEqual(await followers[0].next(), expected[0]);
      assert.deepEqual(await followers[0].next(), expected[1]);
      assert.deepEqual(await followers[1].next(), expected[1]);
      const waiting = followers.map((follower) => follower.next());
      const third = await publish(leading, { leader, predecessor: second, changes: [] });
      for (const revision of await Promise.all(waiting)) {
        assert.deepEqual(revision, {
          position: third,
          predecessor: second.id,
          complete: true,
          changes: [],
          unreadable: [],
        });
      }
    });

    test('carry changedAt if the leader gave it', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position: opened } = await openEpochAsLeader(store);
      const changedAt = 1_700_000_000_123;
      const first = await publish(store, { leader, predecessor: opened, changes: [put('a')], changedAt });
      await publish(store, { leader, predecessor: first, changes: [] });
      const follower = follow(t, store, opened);
      const [dated, undated] = [await follower.next(), await follower.next()];
      assert.equal(dated?.changedAt, changedAt);
      assert.deepEqual(dated?.changes, [put('a')]);
      assert.ok(undated !== undefined && !('changedAt' in undated));
    });

    test('end when the signal aborts, during the wait and before the start', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      const { position } = await openEpochAsLeader(store);
      const follower = follow(t, store, position);
      const next = follower.next();
      follower.stop();
      assert.equal(await next, undefined);
      const signal = AbortSignal.abort();
      for await (const _ of store.table.revisions({ after: position, signal })) assert.fail('no revision expected');
    });

    test('throw GAP after another id, another epoch, or a revision that is not published yet', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position: opened } = await openEpochAsLeader(store);
      const position = await publish(store, { leader, predecessor: opened, changes: [put('a')] });
      for (const after of [
        { ...position, id: 'another' },
        { ...opened, id: 'another' },
        { ...position, epoch: position.epoch + 1 },
        { ...position, revision: position.revision + 5 },
      ]) {
        await assertGap(follow(t, store, after).next());
      }
    });

    test('throw GAP in an empty store', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      await assertGap(follow(t, store, { epoch: 1, revision: 1, id: 'x' }).next());
    });

    test('throw GAP if the next revision was trimmed', async (t) => {
      await using world = await subject.open({ keptRevisions: 3 });
      const store = await world.connect();
      const { leader, position: opened } = await openEpochAsLeader(store);
      const positions = [opened];
      for (let version = 0; version < 5; version++) {
        const predecessor = positions.at(-1) ?? opened;
        positions.push(await publish(store, { leader, predecessor, changes: [put('a', version)] }));
      }
      const [, first = opened, second = opened, third] = positions;
      await assertGap(follow(t, store, first).next());
      assert.deepEqual((await follow(t, store, second).next())?.position, third);
    });

    test('throw GAP when a new epoch is opened', async (t) => {
      await using world = await subject.open();
      const [leading, reading] = [await world.connect(), await world.connect()];
      const { leader, position: opened } = await openEpochAsLeader(leading);
      const position = await publish(leading, { leader, predecessor: opened, changes: [put('a')] });
      // Starts the assertion before `openEpoch`, because the follower may notice the gap before `openEpoch` resolves.
      const gap = assertGap(follow(t, reading, position).next());
      await leading.table.openEpoch({ leader, id: 'next' });
      await gap;
    });

    test('throw GAP after a rollback, also when other revisions have passed the position since', async (t) => {
      await using world = await subject.open();
      const [leading, reading] = [await world.connect(), await world.connect()];
      const { leader, position: opened } = await openEpochAsLeader(leading);
      const kept = await publish(leading, { leader, predecessor: opened, changes: [put('a')] });
      const rollBack = await world.checkpoint();
      const lost = await publish(leading, { leader, predecessor: kept, changes: [put('a', 1)] });
      await rollBack();
      await assertGap(follow(t, reading, lost).next());
      const another = await publish(leading, { leader, predecessor: kept, changes: [put('a', 2)] });
      await assertGap(follow(t, reading, lost).next());
      await publish(leading, { leader, predecessor: another, changes: [put('a', 3)] });
      await assertGap(follow(t, reading, lost).next());
      assert.deepEqual((await follow(t, reading, kept).next())?.position, another);
    });

    test('throw AWAY during an outage and continue from the same position afterwards', async (t) => {
      await using world = await subject.open();
      const [leading, reading] = [await world.connect(), await world.connect()];
      const { leader, position: opened } = await openEpochAsLeader(leading);
      const position = await publish(leading, { leader, predecessor: opened, changes: [put('a')] });
      const next = follow(t, reading, position).next();
      const failing = assert.rejects(next, (error) => error instanceof StoreError && error.code === 'AWAY');
      await world.goAway();
      await failing;
      await world.comeBack();
      const follower = follow(t, reading, position);
      const after = await publish(leading, { leader, predecessor: position, changes: [put('b')] });
      assert.deepEqual((await follower.next())?.position, after);
    });
  });
}

interface Follower {
  /** Resolves with the next revision, or with undefined after the revisions have ended. */
  next(): Promise<Revision | undefined>;
  stop(): void;
}

function follow(t: TestContext, store: Store, after: TablePosition): Follower {
  const stopped = new AbortController();
  t.after(() => stopped.abort());
  const revisions = store.table.revisions({ after, signal: stopped.signal })[Symbol.asyncIterator]();
  return {
    next: async () => {
      const { done, value } = await revisions.next();
      return done === true ? undefined : value;
    },
    stop: () => stopped.abort(),
  };
}

async function assertGap(next: Promise<unknown>): Promise<void> {
  await assert.rejects(next, (error) => error instanceof StoreError && error.code === 'GAP');
}
