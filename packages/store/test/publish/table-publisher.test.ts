import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  apply,
  DEFAULT_SERVICE_SETTINGS,
  EMPTY_TABLE,
  type Entry,
  encodeEntry,
  entryIdOf,
  listenerId,
  type RoutingTable,
  serviceId,
  tableOf,
} from '@weir/model';
import type { PublishRequest, TableStore } from '../../src/contract.ts';
import { StoreError } from '../../src/errors.ts';
import { MemoryStore } from '../../src/memory/memory-store.ts';
import { splitIntoRevisions, TablePublisher } from '../../src/publish/table-publisher.ts';
import { contentOf, entry, put } from '../contract/sample-data.ts';

describe('publishing the table', () => {
  test('opens an epoch with the complete table first, then publishes only changes', async () => {
    const store = new MemoryStore();
    const publisher = new TablePublisher({ store: store.table });
    assert.equal(await publisher.becomeLeader(), undefined);
    const first = await publisher.publish(tableOf([entry('a'), entry('b')]));
    assert.ok(first.kind === 'published' && first.newEpoch && first.position.revision === 1);
    const second = await publisher.publish(tableOf([entry('a'), entry('b', 1)]));
    assert.ok(second.kind === 'published' && !second.newEpoch && second.position.revision === 2);
    assert.deepEqual(store.table.content.revisions.at(-1)?.changes, [put('b', 1)]);
    assert.deepEqual(publisher.published?.position, second.position);
    const third = await publisher.publish(tableOf([entry('b', 1), entry('a')]));
    assert.deepEqual(third, { kind: 'unchanged', position: second.position });
  });

  test('adds changedAt to each revision of a change, but not to a complete table', async () => {
    const store = new MemoryStore();
    const publisher = new TablePublisher({ store: store.table, maxChangesPerRevision: 1 });
    await publisher.becomeLeader();
    await publisher.publish(tableOf([entry('a')]), 1);
    await publisher.publish(tableOf([entry('a', 1), entry('b')]), 2);
    await publisher.publish(tableOf([entry('a', 1)]));
    assert.deepEqual(
      store.table.content.revisions.map(({ changedAt }) => changedAt),
      [undefined, 2, 2, undefined],
    );
  });

  test('takes over a complete table of the former leader without publishing it again', async () => {
    const store = new MemoryStore();
    const before = await publishedBy(store.table, tableOf([entry('a')]));
    const publisher = new TablePublisher({ store: store.table });
    const copy = await publisher.becomeLeader();
    assert.deepEqual(contentOf(copy?.table), contentOf(tableOf([entry('a')])));
    assert.deepEqual(copy?.position, before);
    assert.equal((await publisher.publish(tableOf([entry('a')]))).kind, 'unchanged');
    const next = await publisher.publish(tableOf([entry('a', 1)]));
    assert.ok(next.kind === 'published' && !next.newEpoch && next.position.epoch === before.epoch);
  });

  test('replaces an incomplete table of the former leader in a new epoch', async () => {
    const store = new MemoryStore();
    const before = await publishedBy(store.table, tableOf([entry('a')]));
    const leader = await store.table.claimLeader();
    await store.table.publish({ leader, predecessor: before, id: 'half', changes: [put('b')], complete: false });
    const publisher = new TablePublisher({ store: store.table });
    assert.equal(await publisher.becomeLeader(), undefined);
    const outcome = await publisher.publish(tableOf([entry('a'), entry('b')]));
    assert.ok(outcome.kind === 'published' && outcome.newEpoch && outcome.position.epoch > before.epoch);
  });

  test('takes over a table with unreadable entries and replaces it in a new epoch', async () => {
    const store = new MemoryStore();
    await publishedBy(store.table, tableOf([entry('a')]));
    const newer = overriding(store.table, {
      read: async () => {
        const copy = await store.table.read();
        return copy && { ...copy, unreadable: ['node/z'] };
      },
    });
    const publisher = new TablePublisher({ store: newer });
    assert.equal((await publisher.becomeLeader())?.table.entries.size, 1);
    const outcome = await publisher.publish(tableOf([entry('a')]));
    assert.ok(outcome.kind === 'published' && outcome.newEpoch);
  });

  test('publishes each Service with its listeners before other entries of a complete table', async () => {
    const store = new MemoryStore();
    const publisher = new TablePublisher({ store: store.table, maxChangesPerRevision: 2 });
    await publisher.becomeLeader();
    const at = { address: '10.0.0.1', protocol: 'TCP', port: 80 } as const;
    const listener = (node: string, service: string): Entry => {
      return { kind: 'listener', id: listenerId({ node, ...at }), node, ...at, service };
    };
    const service = (uid: string, isServed: boolean): Entry => ({
      kind: 'service',
      id: serviceId(uid),
      uid,
      namespace: 'shop',
      name: uid,
      tenant: 'shop',
      accepted: { reason: 'Accepted', message: '' },
      degraded: [],
      settings: isServed ? DEFAULT_SERVICE_SETTINGS : null,
      ports: [],
      pool: 'default',
      nodes: [],
    });
    const table = tableOf([
      entry('a'),
      listener('n1', 'z'),
      listener('n2', 'y'),
      service('x', false),
      service('y', true),
      service('z', true),
    ]);
    await publisher.publish(table);
    assert.deepEqual(
      store.table.content.revisions.map(({ changes }) => changes.map(entryIdOf)),
      [
        ['service/y', 'listener/n2/10.0.0.1/TCP/80'],
        ['service/z', 'listener/n1/10.0.0.1/TCP/80'],
        ['node/a', 'service/x'],
      ],
    );
  });

  test('returns not-leader to a former leader, which writes nothing more', async () => {
    const store = new MemoryStore();
    const [old, current] = [0, 1].map(() => new TablePublisher({ store: store.table }));
    assert.ok(old !== undefined && current !== undefined);
    await old.becomeLeader();
    await old.publish(tableOf([entry('a')]));
    await current.becomeLeader();
    assert.equal((await old.publish(tableOf([entry('b')]))).kind, 'not-leader');
    assert.equal(old.isLeader, false);
    await assert.rejects(old.publish(tableOf([])), { code: 'ERR_ASSERTION' });
    assert.deepEqual(contentOf((await store.table.read())?.table), contentOf(tableOf([entry('a')])));
  });

  test('returns not-leader after a recheck even without changes', async () => {
    const store = new MemoryStore();
    const publisher = new TablePublisher({ store: store.table });
    await publisher.becomeLeader();
    await publisher.publish(tableOf([entry('a')]));
    await store.table.claimLeader();
    publisher.recheck();
    assert.equal((await publisher.publish(tableOf([entry('a')]))).kind, 'not-leader');
  });

  test('publishes the complete table when it leads again after a wipe', async () => {
    const store = new MemoryStore();
    const publisher = new TablePublisher({ store: store.table });
    await publisher.becomeLeader();
    await publisher.publish(tableOf([entry('a')]));
    store.faults.wipe();
    publisher.recheck();
    assert.deepEqual(await publisher.publish(tableOf([entry('a')])), { kind: 'not-leader', leader: 0 });
    assert.equal(await publisher.becomeLeader(), undefined);
    const outcome = await publisher.publish(tableOf([entry('a')]));
    assert.ok(outcome.kind === 'published' && outcome.newEpoch);
  });

  test('opens a new epoch after a rollback, with the next change or at a recheck', async () => {
    for (const isRechecked of [true, false]) {
      const store = new MemoryStore();
      const publisher = new TablePublisher({ store: store.table });
      await publisher.becomeLeader();
      await publisher.publish(tableOf([entry('a')]));
      const rollBack = store.faults.checkpoint();
      const lost = await publisher.publish(tableOf([entry('a', 1)]));
      rollBack();
      if (isRechecked) publisher.recheck();
      const to = tableOf([entry('a', isRechecked ? 1 : 2)]);
      const outcome = await publisher.publish(to);
      assert.ok(outcome.kind === 'published' && outcome.newEpoch);
      assert.ok(lost.kind === 'published' && outcome.position.epoch > lost.position.epoch);
      assert.deepEqual(contentOf((await store.table.read())?.table), contentOf(to));
    }
  });

  test('frees the tables of failed publishes during an outage', async () => {
    const store = new MemoryStore();
    const publisher = new TablePublisher({ store: store.table });
    await publisher.becomeLeader();
    let table = apply(EMPTY_TABLE, [put('a')]);
    await publisher.publish(table);
    store.faults.goAway();
    const versions: WeakRef<object>[] = [];
    for (let version = 1; version <= 20; version += 1) {
      table = apply(table, [put('a', version)]);
      versions.push(new WeakRef(table.entries));
      await assert.rejects(publisher.publish(table), { code: 'AWAY' });
    }
    const kept = (): number => versions.filter((version) => version.deref() !== undefined).length;
    assert.ok(
      await isCollected(() => kept() <= 2),
      `${kept()} versions are kept, expected at most the sent and the last version`,
    );
    assert.equal(table.entries.size, 1);
  });

  test('checks the stored position after a call without a response and writes only what is missing', async () => {
    for (const isTaken of [true, false]) {
      const store = new MemoryStore();
      let fails = false;
      const flaky = overriding(store.table, {
        publish: async (publication: PublishRequest) => {
          if (!fails) return store.table.publish(publication);
          fails = false;
          if (isTaken) await store.table.publish(publication);
          throw new StoreError('AWAY', 'no answer');
        },
      });
      const publisher = new TablePublisher({ store: flaky });
      await publisher.becomeLeader();
      await publisher.publish(tableOf([entry('a')]));
      fails = true;
      await assert.rejects(publisher.publish(tableOf([entry('a', 1)])), { code: 'AWAY' });
      assert.equal(positionOf(publisher), undefined);
      const outcome = await publisher.publish(tableOf([entry('a', 1)]));
      assert.equal(outcome.kind, isTaken ? 'unchanged' : 'published');
      assert.equal(positionOf(publisher)?.revision, 2);
    }
  });
});

describe('splitIntoRevisions', () => {
  test('returns one empty revision for no change', () => {
    assert.deepEqual([...splitIntoRevisions([])], [{ changes: [], complete: true }]);
  });

  test('splits 501 changes into two revisions in order', () => {
    const changes = Array.from({ length: 501 }, (_, index) => put(`n${index}`));
    assert.deepEqual([...splitIntoRevisions(changes.slice(1))], [{ changes: changes.slice(1), complete: true }]);
    assert.deepEqual(
      [...splitIntoRevisions(changes)],
      [
        { changes: changes.slice(0, 500), complete: false },
        { changes: changes.slice(500), complete: true },
      ],
    );
  });

  test('limits a revision to a megabyte, or to one larger entry', () => {
    const large = (name: string, bytes: number) => {
      const base = entry(name);
      const rest = bytes - encodeEntry(base).length;
      return { kind: 'put', entry: { ...base, name: base.id.slice(5) + 'x'.repeat(rest) } } as const;
    };
    const changes = [large('a', 600_000), large('b', 400_000), put('c'), large('d', 3_000_000), put('e')];
    assert.deepEqual(
      [...splitIntoRevisions(changes)].map((part) =>
        part.changes.map((change) => (change.kind === 'put' ? change.entry.id : '')),
      ),
      [['node/a', 'node/b'], ['node/c'], ['node/d'], ['node/e']],
    );
  });
});

function positionOf(publisher: TablePublisher) {
  return publisher.published?.position;
}

async function publishedBy(store: TableStore, table: RoutingTable) {
  const publisher = new TablePublisher({ store });
  await publisher.becomeLeader();
  const outcome = await publisher.publish(table);
  if (outcome.kind !== 'published') throw new Error(`publish returned ${outcome.kind}`);
  return outcome.position;
}

function overriding(store: TableStore, over: Partial<TableStore>): TableStore {
  return {
    claimLeader: () => store.claimLeader(),
    meta: () => store.meta(),
    openEpoch: (request) => store.openEpoch(request),
    publish: (publication) => store.publish(publication),
    read: () => store.read(),
    readPartial: () => store.readPartial(),
    revisions: (options) => store.revisions(options),
    ...over,
  };
}

/**
 * Runs garbage collection until `isGone` returns true, at most 10 times. Waits for another turn of the event loop each time, because the
 * target of a WeakRef lives at least until the end of the turn in which the WeakRef was created or read.
 */
async function isCollected(isGone: () => boolean): Promise<boolean> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let attempt = 0; attempt < 10; attempt += 1) {
    await new Promise(setImmediate);
    collect();
    await new Promise(setImmediate);
    if (isGone()) return true;
  }
  return false;
}
