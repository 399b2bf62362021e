import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SliceObject } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { changeTriggerTimeOf } from '../../src/parse/endpoint-slice.ts';
import { KindCache } from '../../src/watch/kubernetes/kind-cache.ts';
import { WATCHED_KINDS } from '../../src/watch/kubernetes/watched-kinds.ts';
import { startControllerHarness } from '../fixtures/controller-harness.ts';
import { serviceObject } from '../fixtures/fake-source.ts';

describe('the change time of a publication', () => {
  test('is that of the earliest change in it', async (context) => {
    const { store, source, clock, advance } = await startControllerHarness(context);
    const at = clock.now();
    source.set({ services: [serviceObject('api')] }, at - 20);
    source.set({ services: [serviceObject('api'), serviceObject('web')] }, at - 30);
    source.set({ services: [serviceObject('shop')] }, at);
    await advance(10);
    assert.equal(lastChangedAt(store), at - 30);
    source.set({ services: [] }, at + 5);
    await advance(10);
    assert.equal(lastChangedAt(store), at + 5);
  });

  test('is absent for objects that existed when the controller began to lead', async (context) => {
    const { store, source, clock, advance } = await startControllerHarness(context);
    await store.table.claimLeader();
    source.set({ services: [] }, clock.now());
    await advance(5_000);
    assert.equal(lastRevision(store)?.changes.length !== 0, true);
    assert.equal(lastChangedAt(store), undefined);
  });

  test('ignores an earlier change without effect', async (context) => {
    const { store, source, clock, advance } = await startControllerHarness(context);
    const before = lastRevision(store);
    source.set({ services: [serviceObject('web')] }, clock.now() - 1_000);
    await advance(10);
    assert.equal(lastRevision(store), before);
    const at = clock.now();
    source.set({ services: [] }, at);
    await advance(10);
    assert.equal(lastChangedAt(store), at);
  });

  test('is kept while the store is unreachable', async (context) => {
    const { store, source, clock, advance } = await startControllerHarness(context);
    const at = clock.now();
    store.faults.goAway();
    source.set({ services: [] }, at);
    await advance(5_000);
    store.faults.comeBack();
    await advance(1_000);
    assert.equal(lastChangedAt(store), at);
  });

  test('is absent if the table is published completely', async (context) => {
    const { store, source, clock, advance } = await startControllerHarness(context);
    store.faults.wipe();
    source.set({ services: [] }, clock.now());
    await advance(3_000);
    assert.equal(lastRevision(store)?.position.revision, 1);
    assert.equal(lastChangedAt(store), undefined);
  });
});

test('reads the suspensions once before a table is published', async (context) => {
  let reads = 0;
  let readsAtPublish: number | undefined;
  const store = new MemoryStore({
    onChange(part) {
      if (part === 'table') readsAtPublish = reads;
    },
  });
  const { source, advance } = await startControllerHarness(context, { store });
  await advance(500);
  const read = store.suspensions.read.bind(store.suspensions);
  store.suspensions.read = () => {
    reads += 1;
    return read();
  };
  readsAtPublish = undefined;
  source.set({ services: [] });
  await advance(10);
  assert.equal(readsAtPublish, 1);
});

describe('the change time of an EndpointSlice', () => {
  test('is that of its annotation if it is new, otherwise the time of the watch event', async () => {
    const { cache, clock, changes } = slices();
    cache.listStarted();
    cache.put(slice('a', '10.0.0.1', { trigger: secondsAgo(clock, 5) }));
    cache.listCompleted();
    assert.deepEqual(changes.splice(0), [undefined, undefined], 'objects of the first list have no change time');

    await clock.advance(60_000);
    const now = clock.now();
    cache.put(slice('a', '10.0.0.2', { trigger: secondsAgo(clock, 2) }));
    cache.put(slice('a', '10.0.0.3', { trigger: secondsAgo(clock, 2) }));
    cache.put(slice('a', '10.0.0.4'));
    cache.put(slice('a', '10.0.0.5', { trigger: secondsAgo(clock, 86_400) }));
    cache.put(slice('b', '10.0.0.6', { trigger: secondsAgo(clock, 86_400) }));
    cache.put(slice('b', '10.0.0.7', { trigger: 'yesterday' }));
    assert.deepEqual(changes.splice(0), [now - 2_000, now, now, now, now, now]);
    cache.deleted(slice('a', '10.0.0.5'));
    assert.deepEqual(changes, [now]);
  });

  test('ignores the annotation of a slice made by hand, and times before its last change', async () => {
    const { cache, clock, changes } = slices();
    cache.listStarted();
    cache.put(slice('mine', '10.0.0.1'));
    cache.put(slice('by-hand', '10.0.0.1'));
    cache.listCompleted();
    await clock.advance(300_000);
    cache.put(slice('mine', '10.0.0.2'));
    await clock.advance(1_000);
    changes.length = 0;
    const now = clock.now();
    const trigger = secondsAgo(clock, 100);
    cache.put(slice('mine', '10.0.0.3', { trigger }));
    cache.put(slice('by-hand', '10.0.0.3', { trigger, managedBy: 'kubectl' }));
    cache.put(slice('new', '10.0.0.3', { trigger, createdAt: secondsAgo(clock, 3) }));
    assert.deepEqual(changes, [now - 1_000, now, now - 3_000]);
  });

  test('is not reported if only the annotation changed', () => {
    const { cache, clock, changes } = slices();
    cache.listStarted();
    cache.listCompleted();
    cache.put(slice('a', '10.0.0.1'));
    changes.length = 0;
    cache.put(slice('a', '10.0.0.1', { trigger: secondsAgo(clock, 1) }));
    assert.deepEqual(changes, []);
  });
});

test('parses trigger times to the millisecond, whatever their number of digits', () => {
  const labels = { [MANAGED_BY]: CONTROLLER };
  const trigger = (text: unknown): number | undefined =>
    changeTriggerTimeOf({
      metadata: { labels, annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': text } },
    });
  assert.equal(trigger('2023-11-14T22:13:20.123456789Z'), 1_700_000_000_123);
  assert.equal(trigger('2023-11-14T22:13:20Z'), 1_700_000_000_000);
  for (const text of ['', '2023', '1700000000', 5, null]) assert.equal(trigger(text), undefined);
  for (const raw of [{}, { metadata: null }, { metadata: { annotations: null } }]) {
    assert.equal(changeTriggerTimeOf(raw), undefined);
  }
});

function lastRevision(store: MemoryStore) {
  return store.table.content.revisions.at(-1);
}

function lastChangedAt(store: MemoryStore): number | undefined {
  return lastRevision(store)?.changedAt;
}

function slices() {
  // The clock starts at a full second, because Kubernetes rounds times to seconds.
  const clock = new ManualClock(1_700_000_000_000);
  const changes: (number | undefined)[] = [];
  const cache = new KindCache<'EndpointSlice'>(WATCHED_KINDS.EndpointSlice, {
    clock,
    onChange: (changedAt) => changes.push(changedAt),
  });
  return { cache, clock, changes };
}

function secondsAgo(clock: ManualClock, seconds: number): string {
  return new Date(clock.now() - seconds * 1_000).toISOString().replace('.000', '');
}

const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const CONTROLLER = 'endpointslice-controller.k8s.io';

interface SliceChange {
  readonly trigger?: string;
  readonly createdAt?: string;
  readonly managedBy?: string;
}

function slice(name: string, address: string, { trigger, createdAt, managedBy = CONTROLLER }: SliceChange = {}) {
  const annotations = trigger === undefined ? {} : { 'endpoints.kubernetes.io/last-change-trigger-time': trigger };
  const labels = { 'kubernetes.io/service-name': 'web', [MANAGED_BY]: managedBy };
  const creationTimestamp = createdAt === undefined ? {} : { creationTimestamp: createdAt };
  return {
    metadata: { uid: `uid-${name}`, namespace: 'shop', name, labels, annotations, ...creationTimestamp },
    addressType: 'IPv4' satisfies SliceObject['addressType'],
    ports: [{ port: 80 }],
    endpoints: [{ addresses: [address] }],
  };
}
