import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { isInForce } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import fc from 'fast-check';
import {
  type FollowSuspensionsOptions,
  followSuspensions,
  type KnownSuspensions,
  mergeSuspensions,
} from '../../src/follow/follow-suspensions.ts';
import { MemoryStore } from '../../src/memory/memory-store.ts';
import { suspension } from '../contract/sample-data.ts';

describe('followSuspensions', () => {
  test('reports the suspensions in force at the start and after each change', async (t) => {
    const store = new MemoryStore();
    await store.suspensions.put(suspension('a'));
    const follower = follow(t, store);
    await follower.settled();
    await store.suspensions.put(suspension('b'));
    await follower.settled();
    await store.suspensions.remove('a');
    await follower.settled();
    assert.deepEqual(follower.events, [['a'], ['a', 'b'], ['b']]);
  });

  test('reports an empty list once for a new store', async (t) => {
    const follower = follow(t, new MemoryStore());
    await follower.settled();
    assert.deepEqual(follower.events, [[]]);
  });

  test('keeps suspensions through an outage and a wipe until the store is complete', async (t) => {
    const store = new MemoryStore();
    await store.suspensions.put(suspension('a'));
    await store.suspensions.put(suspension('b'));
    await store.suspensions.put(suspension('c'));
    await store.suspensions.markComplete();
    const follower = follow(t, store);
    await follower.settled();
    store.faults.goAway();
    await follower.clock.advance(60_000);
    store.faults.wipe();
    store.faults.comeBack();
    await follower.clock.advance(2_000);
    assert.deepEqual(follower.last(), ['a', 'b', 'c']);
    await store.suspensions.put(suspension('d'));
    await store.suspensions.remove('b');
    await follower.settled();
    assert.deepEqual(follower.last(), ['a', 'c', 'd']);
    await store.suspensions.put(suspension('c'));
    await store.suspensions.markComplete();
    await follower.settled();
    assert.deepEqual(follower.last(), ['c', 'd']);
    assert.deepEqual(follower.away, ['away', 'back']);
  });

  test('reads a store that is reachable again without waiting for the next retry', async (t) => {
    const store = new MemoryStore();
    const follower = follow(t, store, {
      onReady: (listener) => store.onConnectionChange((state) => state === 'ready' && listener()),
    });
    await follower.settled();
    store.faults.goAway();
    await follower.clock.advance(60_000);
    store.faults.comeBack();
    await follower.settled();
    assert.deepEqual(follower.away, ['away', 'back']);
  });

  test('keeps suspensions when the store falls back to an older copy, whatever another process then writes', async (t) => {
    const store = new MemoryStore();
    await store.suspensions.put(suspension('a'));
    await store.suspensions.markComplete();
    const restore = store.faults.checkpoint();
    const follower = follow(t, store);
    await store.suspensions.put(suspension('b'));
    await store.suspensions.put(suspension('c'));
    await follower.settled();
    restore();
    await follower.settled();
    assert.deepEqual(follower.last(), ['a', 'b', 'c']);
    await store.suspensions.put(suspension('d'));
    await store.suspensions.remove('a');
    await follower.settled();
    assert.deepEqual(follower.last(), ['b', 'c', 'd']);
    await store.suspensions.put(suspension('c'));
    await store.suspensions.markComplete();
    await follower.settled();
    assert.deepEqual(follower.last(), ['c', 'd']);
  });

  test('reports the end of an expired suspension although the store still lists it', async (t) => {
    const store = new MemoryStore();
    const follower = follow(t, store);
    const now = follower.clock.now();
    await store.suspensions.put(suspension('a', { until: now + 5_000 }));
    await store.suspensions.put(suspension('b', { until: now + 9_000 }));
    await store.suspensions.put(suspension('past', { until: now }));
    await follower.settled();
    await follower.clock.advance(4_999);
    assert.deepEqual(follower.last(), ['a', 'b']);
    await follower.clock.advance(1);
    assert.deepEqual(follower.last(), ['b']);
    store.faults.goAway();
    await follower.clock.advance(4_000);
    assert.deepEqual(follower.last(), []);
  });

  test('reports a suspension again when a clock that was ahead is set right', async (t) => {
    const store = new MemoryStore();
    const follower = follow(t, store);
    await store.suspensions.put(suspension('a', { until: follower.clock.now() + 1_800_000 }));
    await follower.settled();
    follower.clock.jumpWallClock(3_600_000);
    await store.suspensions.put(suspension('b'));
    await follower.settled();
    assert.deepEqual(follower.last(), ['b']);
    follower.clock.jumpWallClock(-3_600_000);
    await follower.clock.advance(10_000);
    assert.deepEqual(follower.last(), ['a', 'b']);
  });

  test('reports the end of a suspension when a clock that was behind is set right', async (t) => {
    const store = new MemoryStore();
    const follower = follow(t, store);
    follower.clock.jumpWallClock(-3_600_000);
    await store.suspensions.put(suspension('a', { until: follower.clock.now() + 1_800_000 }));
    await follower.settled();
    follower.clock.jumpWallClock(3_600_000);
    await follower.clock.advance(10_000);
    assert.deepEqual(follower.last(), []);
  });

  test('starts from known suspensions and expires them while the store is unreachable', async (t) => {
    const store = new MemoryStore();
    store.faults.goAway();
    const clock = new ManualClock();
    const cutoffs = [suspension('a'), suspension('b', { until: clock.now() + 1_000 })];
    const follower = follow(t, store, { clock, from: { cutoffs, sequence: 4 } });
    await clock.advance(999);
    assert.deepEqual(follower.events, []);
    await clock.advance(1);
    assert.deepEqual(follower.events, [['a']]);
    store.faults.comeBack();
    await clock.advance(2_000);
    assert.deepEqual(follower.last(), ['a']);
    await store.suspensions.markComplete();
    await follower.settled();
    assert.deepEqual(follower.last(), []);
  });

  test('reports at once that a suspension of the state file has ended', async (t) => {
    const store = new MemoryStore();
    store.faults.goAway();
    const clock = new ManualClock();
    const cutoffs = [suspension('a'), suspension('b', { until: clock.now() - 1 })];
    const follower = follow(t, store, { clock, from: { cutoffs, sequence: 4 } });
    await follower.settled();
    assert.deepEqual(follower.events, [['a']]);
  });

  test('ends when the signal aborts and leaves no timer', async (t) => {
    const store = new MemoryStore();
    const follower = follow(t, store);
    await store.suspensions.put(suspension('a', { until: follower.clock.now() + 5_000 }));
    await follower.settled();
    await follower.stop();
    assert.equal(follower.clock.pendingTimers, 0);
  });

  test('rejects with the error of a callback, also at an expiry', async () => {
    const clock = new ManualClock();
    const store = new MemoryStore({ clock });
    await store.suspensions.put(suspension('a', { until: clock.now() + 5_000 }));
    const { signal } = new AbortController();
    const following = followSuspensions(store.suspensions, {
      signal,
      clock,
      onSuspensions: (cutoffs) => assert.notEqual(cutoffs.length, 0, 'broken listener'),
    });
    const rejected = assert.rejects(following, /broken listener/);
    await clock.advance(5_000);
    await rejected;
    assert.equal(clock.pendingTimers, 0);
  });
});

describe('mergeSuspensions', () => {
  const step = fc.record({
    kind: fc.constantFrom('put', 'put', 'remove', 'declare', 'read', 'read', 'save', 'restore', 'wipe'),
    uid: fc.constantFrom(...'abc'),
    until: fc.option(fc.integer({ min: 1, max: 60 })),
  });

  test('lifts a suspension only if it was removed, or absent from a declared list, after it was last put', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const clock = new ManualClock();
        const store = new MemoryStore({ clock });
        let restore = store.faults.checkpoint();
        let known: KnownSuspensions = { cutoffs: [], sequence: -1 };
        const mayBeLifted = new Set<string>();
        for (const { kind, uid, until } of steps) {
          await clock.advance(1);
          const listed = new Set((await store.suspensions.read()).suspensions.map((each) => each.uid));
          if (kind === 'put') {
            await store.suspensions.put(suspension(uid, { until: until === null ? null : clock.now() + until }));
            mayBeLifted.delete(uid);
          }
          if (kind === 'remove') {
            await store.suspensions.remove(uid);
            mayBeLifted.add(uid);
          }
          if (kind === 'declare') {
            await store.suspensions.markComplete();
            for (const each of 'abc') if (!listed.has(each)) mayBeLifted.add(each);
          }
          if (kind === 'save') restore = store.faults.checkpoint();
          if (kind === 'restore') restore();
          if (kind === 'wipe') store.faults.wipe();
          if (kind !== 'read') continue;
          const next = mergeSuspensions(known, await store.suspensions.read(), clock.now());
          const kept = new Set(next.cutoffs.map((each) => each.uid));
          for (const each of known.cutoffs) {
            assert.ok(kept.has(each.uid) || !isInForce(each, clock.now()) || mayBeLifted.has(each.uid), each.uid);
          }
          known = next;
        }
      }),
    );
  });

  test('ends at the list of the store after a declaration', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const clock = new ManualClock();
        const store = new MemoryStore({ clock });
        let restore = store.faults.checkpoint();
        let known: KnownSuspensions = { cutoffs: [], sequence: -1 };
        for (const { kind, uid } of [...steps, { kind: 'declare', uid: 'a' }, { kind: 'read', uid: 'a' }]) {
          await clock.advance(1);
          if (kind === 'put') await store.suspensions.put(suspension(uid));
          if (kind === 'remove') await store.suspensions.remove(uid);
          if (kind === 'declare') await store.suspensions.markComplete();
          if (kind === 'save') restore = store.faults.checkpoint();
          if (kind === 'restore') restore();
          if (kind === 'wipe') store.faults.wipe();
          if (kind === 'read') known = mergeSuspensions(known, await store.suspensions.read(), clock.now());
        }
        assert.deepEqual(known.cutoffs, (await store.suspensions.read()).suspensions);
      }),
    );
  });
});

function follow(t: TestContext, store: MemoryStore, options: Partial<FollowSuspensionsOptions> = {}) {
  const clock = new ManualClock();
  const stopped = new AbortController();
  const events: string[][] = [];
  const away: string[] = [];
  const done = followSuspensions(store.suspensions, {
    signal: stopped.signal,
    clock,
    onSuspensions: (cutoffs) => void events.push(cutoffs.map(({ uid }) => uid)),
    onAway: () => void away.push('away'),
    onBack: () => void away.push('back'),
    ...options,
  });
  const stop = async (): Promise<void> => {
    stopped.abort();
    await done;
  };
  t.after(stop);
  return { events, away, clock, last: () => events.at(-1), settled: () => clock.advance(0), stop };
}
