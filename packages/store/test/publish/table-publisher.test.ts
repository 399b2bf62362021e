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
import { createMemoryStore } from '../../src/memory/memory-store.ts';
import { splitIntoRevisions, TablePublisher } from '../../src/publish/table-publisher.ts';
import { contentOf, entry, put } from '../contract/sample-data.ts';

describe('publishing the table', () => {
  test('the first leader opens an epoch and publishes the whole; then only what changed', async () => {
    const store = createMemoryStore();
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

  test('each revision of a change tells since when the world has been so; a table that is published whole does not', async () => {
    const store = createMemoryStore();
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

  test('the next leader takes over what is whole, and publishes nothing twice', async () => {
    const store = createMemoryStore();
    const before = await publishedBy(store.table, tableOf([entry('a')]));
    const publisher = new TablePublisher({ store: store.table });
    const copy = await publisher.becomeLeader();
    assert.deepEqual(contentOf(copy?.table), contentOf(tableOf([entry('a')])));
    assert.deepEqual(copy?.position, before);
    assert.equal((await publisher.publish(tableOf([entry('a')]))).kind, 'unchanged');
    const next = await publisher.publish(tableOf([entry('a', 1)]));
    assert.ok(next.kind === 'published' && !next.newEpoch && next.position.epoch === before.epoch);
  });

  test('what the last leader left half published is published whole in a new epoch', async () => {
    const store = createMemoryStore();
    const before = await publishedBy(store.table, tableOf([entry('a')]));
    const leader = await store.table.claimLeader();
    await store.table.publish({ leader, predecessor: before, id: 'half', changes: [put('b')], complete: false });
    const publisher = new TablePublisher({ store: store.table });
    assert.equal(await publisher.becomeLeader(), undefined);
    const outcome = await publisher.publish(tableOf([entry('a'), entry('b')]));
    assert.ok(outcome.kind === 'published' && outcome.newEpoch && outcome.position.epoch > before.epoch);
  });

  test('a table with entries that cannot be read is taken over, and replaced whole', async () => {
    const store = createMemoryStore();
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

  test('of a table that is published whole the Services come first, each with its listeners', async () => {
    const store = createMemoryStore();
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

  test('an older leader hears that it does not lead, and writes nothing more', async () => {
    const store = createMemoryStore();
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

  test('after a reconnection it hears of another leader even when nothing is to be written', async () => {
    const store = createMemoryStore();
    const publisher = new TablePublisher({ store: store.table });
    await publisher.becomeLeader();
    await publisher.publish(tableOf([entry('a')]));
    await store.table.claimLeader();
    publisher.recheck();
    assert.equal((await publisher.publish(tableOf([entry('a')]))).kind, 'not-leader');
  });

  test('a wiped store refuses the old token; leading again publishes the whole', async () => {
    const store = createMemoryStore();
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

  test('a store that was rolled back gets a new epoch, with the next change or at a recheck', async () => {
    for (const isRechecked of [true, false]) {
      const store = createMemoryStore();
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

  test('of versions that came and went while the store was away none is kept', async () => {
    const store = createMemoryStore();
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
    assert.ok(await isCollected(() => kept() <= 2), `${kept()} are kept beside the one that was sent and the last`);
    assert.equal(table.entries.size, 1);
  });

  test('when no answer came, it looks whether the store took it, and writes only what is missing', async () => {
    for (const isTaken of [true, false]) {
      const store = createMemoryStore();
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

describe('splitting a change', () => {
  test('no change is one revision, which may still make the table whole', () => {
    assert.deepEqual(splitIntoRevisions([]), [[]]);
  });

  test('500 changes are one revision, 501 are two, in their order', () => {
    const changes = Array.from({ length: 501 }, (_, index) => put(`n${index}`));
    assert.deepEqual(splitIntoRevisions(changes.slice(1)), [changes.slice(1)]);
    assert.deepEqual(splitIntoRevisions(changes), [changes.slice(0, 500), changes.slice(500)]);
  });

  test('a revision holds at most a megabyte, or one entry that is larger', () => {
    const large = (name: string, bytes: number) => {
      const base = entry(name);
      const rest = bytes - encodeEntry(base).length;
      return { kind: 'put', entry: { ...base, name: base.id.slice(5) + 'x'.repeat(rest) } } as const;
    };
    assert.deepEqual(
      splitIntoRevisions([large('a', 600_000), large('b', 400_000), put('c'), large('d', 3_000_000), put('e')]).map(
        (part) => part.map((change) => (change.kind === 'put' ? change.entry.id : '')),
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
  if (outcome.kind !== 'published') throw new Error(`publish said ${outcome.kind}`);
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

/** What a WeakRef refers to stays for the turn in which it was made or read. */
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
