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

/** Checks that certificates and their private keys arrive together and are consistent with the other entries. */
export function certificatesContract(subject: StoreUnderTest): void {
  describe(`certificates in ${subject.name}`, () => {
    test('are read with their keys, also after a renewal or deletion', async () => {
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

    test('are followed with their keys through puts, renewals, deletion and return', async (t) => {
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

    test('publishes a certificate whose key is sealed with another secret', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const publisher = new TablePublisher({ store: store.table });
      await publisher.becomeLeader();
      await publisher.publish(tableOf([certificate('u1')]));
      const again = { ...certificate('u1'), sealedKey: '1.sealed-under-another-secret' };
      assert.equal((await publisher.publish(tableOf([again]))).kind, 'published');
      await assertReads(store, again);
    });

    test('are complete in a table of several revisions and in the partial table of a former leader', async () => {
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

    test('are not published again by the next leader', async () => {
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

    test('are deleted by a new epoch', async () => {
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

    test('are current for followers after missed revisions and after a wipe', async (t) => {
      await using world = await subject.open({ keptRevisions: 2 });
      const [leading, reading] = [await world.connect(), await world.connect()];
      const publisher = new TablePublisher({ store: leading.table });
      await publisher.becomeLeader();
      await publisher.publish(tableOf([certificate('u1'), certificate('u2')]));
      const followed = startFollower(t, reading, world.clock);
      await world.eventually(5_000, async () => assert.equal(followed()?.entries.size, 2));
      await world.goAway();
      await world.comeBack();
      for (let version = 1; version < 6; version += 1) await publisher.publish(tableOf([certificate('u1', version)]));
      await world.eventually(5_000, async () =>
        assert.deepEqual(contentOf(followed()), contentOfEntries(certificate('u1', 5))),
      );
      await world.wipe();
      await publisher.becomeLeader();
      await publisher.publish(tableOf([certificate('u1', 6), certificate('u3')]));
      await world.eventually(5_000, async () =>
        assert.deepEqual(contentOf(followed()), contentOfEntries(certificate('u1', 6), certificate('u3'))),
      );
    });

    test('are consistent while they are renewed during reads of the table', async () => {
      await using world = await subject.open();
      const [leading, reading] = [await world.connect(), await world.connect()];
      const { leader, position: opened } = await openEpochAsLeader(leading);
      const services = Array.from({ length: 60 }, (_, index) => `u${index}`);
      // Returns changes after which every certificate has the number of the revision or is deleted.
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

function startFollower(t: TestContext, store: Store, clock: Clock): () => RoutingTable | undefined {
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
