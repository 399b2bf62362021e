import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Change, TablePosition } from '@weir/model';
import type { RunningProxy } from '@weir/proxy';
import { silentLogger } from '@weir/runtime';
import { MemoryStore, type Store } from '@weir/store';
import { eventually } from '@weir/testkit';
import { FleetProxies } from '../../src/standalone/fleet-proxies.ts';

test('keeps the other proxies running if the proxy of a removed node fails to close', async () => {
  const store = new MemoryStore();
  const publish = await publisher(store);
  const started: string[] = [];
  const closed: string[] = [];
  const proxies = new FleetProxies({
    store,
    log: silentLogger(),
    start: async ({ name }) => {
      started.push(name);
      return proxy(async () => {
        closed.push(name);
        if (name === 'a') throw new Error('a is stuck');
      });
    },
  });
  let failed = false;
  proxies.failed.catch(() => {
    failed = true;
  });
  await publish([node('a'), node('b')]);
  await eventually(() => assert.equal(started.length, 2));
  await publish([{ kind: 'delete', id: 'node/a' }]);
  await eventually(() => assert.deepEqual(closed, ['a']));
  await proxies.close();
  assert.deepEqual(closed, ['a', 'b']);
  assert.equal(failed, false);
  await store.close();
});

test('waits for all proxies if one fails to close, and then rejects', async () => {
  const store = new MemoryStore();
  const publish = await publisher(store);
  const started: string[] = [];
  const slow = Promise.withResolvers<void>();
  const proxies = new FleetProxies({
    store,
    log: silentLogger(),
    start: async ({ name }) => {
      started.push(name);
      return proxy(() => (name === 'a' ? Promise.reject(new Error('a is stuck')) : slow.promise));
    },
  });
  await publish([node('a'), node('b')]);
  await eventually(() => assert.equal(started.length, 2));
  let isDone = false;
  const closing = proxies.close().finally(() => {
    isDone = true;
  });
  closing.catch(() => {});
  await new Promise(setImmediate);
  assert.equal(isDone, false);
  slow.resolve();
  await assert.rejects(closing, /a is stuck/);
  await store.close();
});

test('rejects `failed` if following the table fails', async () => {
  const store = new MemoryStore();
  const publish = await publisher(store);
  const proxies = new FleetProxies({
    store,
    log: silentLogger(),
    start: () => {
      throw new TypeError('a bug');
    },
  });
  await publish([node('a')]);
  await assert.rejects(proxies.failed, /a bug/);
  await proxies.close();
  await store.close();
});

function proxy(close: () => Promise<void>): RunningProxy {
  const never = new Promise<never>(() => {});
  return { ready: never, failed: never, view: () => assert.fail('not asked'), adminAddress: undefined, close };
}

function node(name: string): Change {
  const entry = {
    kind: 'node',
    id: `node/${name}`,
    name,
    bindAddresses: [],
    publishedAddresses: [],
    zone: null,
    pool: 'default',
  } as const;
  return { kind: 'put', entry };
}

async function publisher(store: Store): Promise<(changes: readonly Change[]) => Promise<void>> {
  const leader = await store.table.claimLeader();
  const opened = await store.table.openEpoch({ leader, id: 'opened' });
  assert.equal(opened.kind, 'published');
  let position: TablePosition = opened.position;
  return async (changes) => {
    const id = `after-${position.id}`;
    const result = await store.table.publish({ id, complete: true, leader, predecessor: position, changes });
    assert.equal(result.kind, 'published');
    position = result.position;
  };
}
