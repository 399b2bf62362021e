import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type Change, type Entry, type RoutingTable, tableOf } from '@weir/model';
import type { Clock } from '@weir/runtime';
import type { Revision, Store } from '../../src/contract.ts';
import { followTable } from '../../src/follow/follow-table.ts';
import { TablePublisher } from '../../src/publish/table-publisher.ts';
import {
  certificate,
  contentOf,
  contentOfEntries,
  entry,
  newId,
  openEpochAsLeader,
  publish,
  put,
  putCertificate,
  removeCertificate,
} from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

/** Wherever their keys lie, certificates cross the store with them, and in step with all else. */
export function certificatesContract(subject: StoreUnderTest): void {
  describe(`certificates in ${subject.name}`, () => {
    test('are read with their keys, and again when they were renewed or deleted', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position: opened } = await openEpochAsLeader(store);
      const first = await publish(store, {
        leader,
        predecessor: opened,
        changes: [putCertificate('u1'), putCertificate('u2'), put('a')],
      });
      await assertReads(store, certificate('u1'), certificate('u2'), entry('a'));
      const second = await publish(store, { leader, predecessor: first, changes: [putCertificate('u1', 1)] });
      await assertReads(store, certificate('u1', 1), certificate('u2'), entry('a'));
      await publish(store, { leader, predecessor: second, changes: [removeCertificate('u2')] });
      await assertReads(store, certificate('u1', 1), entry('a'));
    });

    test('are followed with their keys: put, renewed with another key and with the same, deleted and back', async (t) => {
      await using world = await subject.open();
      const [leading, reading] = [await world.connect(), await world.connect()];
      const { leader, position: opened } = await openEpochAsLeader(leading);
      const sameKey = { ...certificate('u1', 1), chain: 'chain of the same key', clientAuthorities: 'some' };
      const steps: readonly (readonly Change[])[] = [
        [putCertificate('u1'), put('a')],
        [putCertificate('u1', 1)],
        [{ kind: 'put', entry: sameKey }],
        [removeCertificate('u1'), put('a', 1)],
        [putCertificate('u1', 2), putCertificate('u2')],
      ];
      const next = follow(t, reading, opened);
      let predecessor = opened;
      for (const changes of steps) {
        predecessor = await publish(leading, { leader, predecessor, changes });
        const revision = await next();
        assert.deepEqual(revision?.changes, changes);
        assert.deepEqual(revision?.unreadable, []);
      }
    });

    test('a key that is sealed anew comes with its certificate, though that is the same', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const publisher = new TablePublisher({ store: store.table });
      await publisher.becomeLeader();
      await publisher.publish(tableOf([certificate('u1')]));
      const again = { ...certificate('u1'), sealedKey: '1.sealed-under-another-secret' };
      assert.equal((await publisher.publish(tableOf([again]))).kind, 'published');
      await assertReads(store, again);
    });

    test('many in a whole table of several revisions are there when it is whole, and what a dead leader left has keys, too', async () => {
      await using world = await subject.open();
      const [leading, next] = [await world.connect(), await world.connect()];
      const { leader, position: opened } = await openEpochAsLeader(leading);
      const part = Array.from({ length: 40 }, (_, index) => putCertificate(`u${index}`));
      await publish(leading, { leader, predecessor: opened, changes: part, complete: false });
      assert.equal(await next.table.read(), undefined);
      assert.deepEqual(
        contentOf(await next.table.readPartial()),
        contentOfEntries(...part.map((change) => change.entry)),
      );

      const table = tableOf(Array.from({ length: 1_200 }, (_, index) => certificate(`u${index}`, 1)));
      const publisher = new TablePublisher({ store: next.table });
      assert.equal(await publisher.becomeLeader(), undefined);
      const outcome = await publisher.publish(table);
      assert.ok(outcome.kind === 'published' && outcome.newEpoch && outcome.position.revision > 1);
      await assertReads(leading, ...table.entries.values());
    });

    test('of a table that the next leader takes over nothing is published again', async () => {
      await using world = await subject.open();
      const [first, second] = [await world.connect(), await world.connect()];
      const table = tableOf([certificate('u1'), entry('a')]);
      const before = new TablePublisher({ store: first.table });
      await before.becomeLeader();
      await before.publish(table);
      const after = new TablePublisher({ store: second.table });
      assert.deepEqual(contentOf((await after.becomeLeader())?.table), contentOf(table));
      assert.equal((await after.publish(table)).kind, 'unchanged');
    });

    test('a new epoch forgets them', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position: opened } = await openEpochAsLeader(store);
      await publish(store, { leader, predecessor: opened, changes: [putCertificate('u1')] });
      const next = await store.table.openEpoch({ leader, id: newId() });
      assert.equal(await store.table.readPartial(), undefined);
      assert.ok(next.kind === 'published');
      await publish(store, { leader, predecessor: next.position, changes: [put('a')] });
      await assertReads(store, entry('a'));
    });

    test('who missed revisions, and who was there when the store was wiped, end at the present ones', async (t) => {
      await using world = await subject.open({ keptRevisions: 2 });
      const [leading, reading] = [await world.connect(), await world.connect()];
      const publisher = new TablePublisher({ store: leading.table });
      await publisher.becomeLeader();
      await publisher.publish(tableOf([certificate('u1'), certificate('u2')]));
      const told = followed(t, reading, world.clock);
      await world.eventually(5_000, async () => assert.equal(told()?.entries.size, 2));
      await world.goAway();
      await world.comeBack();
      for (let version = 1; version < 6; version += 1) await publisher.publish(tableOf([certificate('u1', version)]));
      await world.eventually(5_000, async () =>
        assert.deepEqual(contentOf(told()), contentOfEntries(certificate('u1', 5))),
      );
      await world.wipe();
      await publisher.becomeLeader();
      await publisher.publish(tableOf([certificate('u1', 6), certificate('u3')]));
      await world.eventually(5_000, async () =>
        assert.deepEqual(contentOf(told()), contentOfEntries(certificate('u1', 6), certificate('u3'))),
      );
    });

    test('are whole in themselves however fast they are renewed while the table is read, and none stays behind', async () => {
      await using world = await subject.open();
      const [leading, reading] = [await world.connect(), await world.connect()];
      const { leader, position: opened } = await openEpochAsLeader(leading);
      const services = Array.from({ length: 60 }, (_, index) => `u${index}`);
      // At each revision all are of its number, or one of those that are gone.
      const changesAt = (revision: number) =>
        services.map((uid, index) =>
          index % 30 === revision % 30 ? removeCertificate(uid) : putCertificate(uid, revision),
        );
      const expectedAt = (revision: number) =>
        changesAt(revision).flatMap((change) => (change.kind === 'put' ? change.entry : []));
      let position = await publish(leading, { leader, predecessor: opened, changes: changesAt(1) });
      let isDone = false;
      const done = (async () => {
        for (let revision = 2; revision <= 120; revision += 1) {
          position = await publish(leading, { leader, predecessor: position, changes: changesAt(revision) });
        }
      })().finally(() => {
        isDone = true;
      });
      do {
        const copy = await reading.table.read();
        assert.ok(copy !== undefined);
        const left = new Set(copy.unreadable);
        const expected = expectedAt(copy.position.revision).filter(({ id }) => !left.has(id));
        assert.deepEqual(contentOf(copy.table), contentOfEntries(...expected));
      } while (!isDone);
      await done;
      await assertReads(reading, ...expectedAt(120));
    });
  });
}

async function assertReads(store: Store, ...entries: Entry[]): Promise<void> {
  const copy = await store.table.read();
  assert.deepEqual(contentOf(copy?.table), contentOfEntries(...entries));
  assert.deepEqual(copy?.unreadable, []);
}

function follow(t: TestContext, store: Store, after: Revision['position']): () => Promise<Revision | undefined> {
  const stopped = new AbortController();
  t.after(() => stopped.abort());
  const revisions = store.table.revisions({ after, signal: stopped.signal })[Symbol.asyncIterator]();
  return async () => (await revisions.next()).value;
}

function followed(t: TestContext, store: Store, clock: Clock): () => RoutingTable | undefined {
  const stopped = new AbortController();
  let table: RoutingTable | undefined;
  const following = followTable(store.table, {
    signal: stopped.signal,
    clock,
    onTable: (whole) => {
      table = whole;
    },
    onChanges: (_changes, whole) => {
      table = whole;
    },
  });
  t.after(async () => {
    stopped.abort();
    await following;
  });
  return () => table;
}
