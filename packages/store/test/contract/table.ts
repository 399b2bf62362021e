import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MAX_CHANGES_PER_REVISION } from '../../src/limits.ts';
import { contentOf, contentOfEntries, entry, newId, openEpochAsLeader, publish, put, remove } from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

export function tableContract(subject: StoreUnderTest): void {
  describe(`the table of ${subject.name}`, () => {
    test('has no meta and no content before the first write', async () => {
      await using world = await subject.open();
      const { table } = await world.connect();
      assert.equal(await table.meta(), undefined);
      assert.equal(await table.read(), undefined);
    });

    test('gives increasing leader tokens, also after a wipe if the process keeps running', async () => {
      await using world = await subject.open();
      const [a, b] = [await world.connect(), await world.connect()];
      const first = await a.table.claimLeader();
      const second = await b.table.claimLeader();
      assert.ok(second > first);
      await world.wipe();
      assert.ok((await b.table.claimLeader()) > second);
    });

    test('has no epoch after claimLeader alone', async () => {
      await using world = await subject.open();
      const { table } = await world.connect();
      await table.claimLeader();
      assert.equal(await table.meta(), undefined);
      assert.equal(await table.read(), undefined);
    });

    test('is incomplete and unreadable at revision 0 of a new epoch', async () => {
      await using world = await subject.open();
      const { table } = await world.connect();
      const leader = await table.claimLeader();
      const opened = await table.openEpoch({ leader, id: 'first' });
      assert.equal(opened.kind, 'published');
      assert.ok(opened.kind === 'published');
      assert.equal(opened.position.revision, 0);
      assert.deepEqual(await table.meta(), { ...opened.position, id: 'first', complete: false, leader });
      assert.equal(await table.read(), undefined);
    });

    test('is readable at the revision that completes it', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position: opened } = await openEpochAsLeader(store);
      const first = await publish(store, {
        leader,
        predecessor: opened,
        changes: [put('a'), put('b')],
        complete: false,
      });
      assert.equal(await store.table.read(), undefined);
      const second = await publish(store, { leader, predecessor: first, changes: [put('c'), remove('a')] });
      const copy = await store.table.read();
      assert.deepEqual(copy?.position, second);
      assert.deepEqual(copy?.unreadable, []);
      assert.deepEqual(contentOf(copy?.table), contentOfEntries(entry('b'), entry('c')));
      assert.deepEqual(await store.table.meta(), { ...second, complete: true, leader });
    });

    test('is complete with no entries', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position: predecessor } = await openEpochAsLeader(store);
      const position = await publish(store, { leader, predecessor, changes: [] });
      const copy = await store.table.read();
      assert.deepEqual(copy?.position, position);
      assert.equal(copy?.table.entries.size, 0);
    });

    test('is unreadable between the revisions of one change', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position: opened } = await openEpochAsLeader(store);
      const complete = await publish(store, { leader, predecessor: opened, changes: [put('a')] });
      const part = await publish(store, { leader, predecessor: complete, changes: [put('a', 1)], complete: false });
      assert.equal((await store.table.meta())?.complete, false);
      assert.equal(await store.table.read(), undefined);
      await publish(store, { leader, predecessor: part, changes: [put('b', 1)] });
      assert.deepEqual(contentOf((await store.table.read())?.table), contentOfEntries(entry('a', 1), entry('b', 1)));
    });

    test('gives the entries of an incomplete table to the next leader', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      assert.equal(await store.table.readPartial(), undefined);
      const { leader, position: opened } = await openEpochAsLeader(store);
      assert.equal(await store.table.readPartial(), undefined);
      const complete = await publish(store, { leader, predecessor: opened, changes: [put('a'), put('b')] });
      await publish(store, { leader, predecessor: complete, changes: [put('a', 1)], complete: false });
      assert.deepEqual(contentOf(await store.table.readPartial()), contentOfEntries(entry('a', 1), entry('b')));
    });

    test('refuses writes of a former leader and returns the current leader', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader: old, position } = await openEpochAsLeader(store);
      const leader = await store.table.claimLeader();
      const publication = { leader: old, predecessor: position, id: newId(), changes: [put('a')], complete: true };
      assert.deepEqual(await store.table.publish(publication), { kind: 'not-leader', leader });
      assert.deepEqual(await store.table.openEpoch({ leader: old, id: newId() }), { kind: 'not-leader', leader });
      assert.deepEqual(await store.table.meta(), { ...position, complete: false, leader });
    });

    test('refuses writes of a leader from before a wipe', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position } = await openEpochAsLeader(store);
      await world.wipe();
      const publication = { leader, predecessor: position, id: newId(), changes: [put('a')], complete: true };
      assert.deepEqual(await store.table.publish(publication), { kind: 'not-leader', leader: 0 });
      assert.deepEqual(await store.table.openEpoch({ leader, id: newId() }), { kind: 'not-leader', leader: 0 });
      assert.equal(await store.table.meta(), undefined);
    });

    test('is published only if epoch, revision and id of the predecessor match', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position: opened } = await openEpochAsLeader(store);
      const position = await publish(store, { leader, predecessor: opened, changes: [put('a')] });
      const meta = { ...position, complete: true, leader };
      for (const predecessor of [
        opened,
        { ...position, id: 'another' },
        { ...position, epoch: position.epoch + 1 },
        { ...position, revision: position.revision + 1 },
      ]) {
        const publication = { leader, predecessor, id: newId(), changes: [put('b')], complete: true };
        assert.deepEqual(await store.table.publish(publication), { kind: 'wrong-predecessor', meta });
      }
      assert.deepEqual(contentOf((await store.table.read())?.table), contentOfEntries(entry('a')));
    });

    test('refuses a publish without an epoch', async () => {
      await using world = await subject.open();
      const { table } = await world.connect();
      const leader = await table.claimLeader();
      const predecessor = { epoch: 1, revision: 0, id: 'x' };
      const result = await table.publish({ leader, predecessor, id: newId(), changes: [put('a')], complete: true });
      assert.deepEqual(result, { kind: 'wrong-predecessor', meta: undefined });
    });

    test('is deleted by a new epoch with a higher number, also after a wipe', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position: opened } = await openEpochAsLeader(store);
      await publish(store, { leader, predecessor: opened, changes: [put('a')] });
      const next = await store.table.openEpoch({ leader, id: newId() });
      assert.ok(next.kind === 'published' && next.position.epoch > opened.epoch);
      assert.equal(await store.table.read(), undefined);
      await publish(store, { leader, predecessor: next.position, changes: [put('b')] });
      assert.deepEqual(contentOf((await store.table.read())?.table), contentOfEntries(entry('b')));
      await world.wipe();
      assert.ok((await openEpochAsLeader(store)).position.epoch > next.position.epoch);
    });

    test(`takes ${MAX_CHANGES_PER_REVISION} changes per revision and throws for more`, async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { leader, position: predecessor } = await openEpochAsLeader(store);
      const changes = Array.from({ length: MAX_CHANGES_PER_REVISION + 1 }, (_, index) => put(`n${index}`));
      await assert.rejects(publish(store, { leader, predecessor, changes }), { code: 'ERR_ASSERTION' });
      await publish(store, { leader, predecessor, changes: changes.slice(1) });
      assert.equal((await store.table.read())?.table.entries.size, MAX_CHANGES_PER_REVISION);
    });

    test('is consistent at one revision while it is published during reads', async () => {
      await using world = await subject.open();
      const [leading, reading] = [await world.connect(), await world.connect()];
      const { leader, position: opened } = await openEpochAsLeader(leading);
      const names = Array.from({ length: 300 }, (_, index) => `n${index}`);
      // Returns changes after which every entry has the number of the revision or is one of ten deleted entries.
      const changesAt = (revision: number) =>
        names.map((name, index) => (index % 30 === revision % 30 ? remove(name) : put(name, revision)));
      let position = await publish(leading, { leader, predecessor: opened, changes: changesAt(1) });
      const done = (async () => {
        for (let revision = 2; revision <= 120; revision++) {
          position = await publish(leading, { leader, predecessor: position, changes: changesAt(revision) });
        }
      })();
      let isDone = false;
      void done.then(() => {
        isDone = true;
      });
      let reads = 0;
      do {
        const copy = await reading.table.read();
        assert.ok(copy !== undefined);
        const expected = changesAt(copy.position.revision).filter((change) => change.kind === 'put');
        assert.deepEqual(contentOf(copy.table), contentOfEntries(...expected.map((change) => change.entry)));
        reads += 1;
      } while (!isDone);
      await done;
      assert.ok(reads > 1);
    });
  });
}
