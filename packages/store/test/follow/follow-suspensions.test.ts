import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { isInForce, type Suspension } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import fc from 'fast-check';
import type { SuspensionState } from '../../src/contract.ts';
import {
  type FollowSuspensionsOptions,
  followSuspensions,
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
  test('keeps listed suspensions in force, and known ones unless complete or removed', () => {
    const uids = fc.uniqueArray(fc.constantFrom<string>(...'abcde'));
    fc.assert(
      fc.property(uids, uids, uids, fc.boolean(), fc.nat(10), (before, listed, gone, complete, now) => {
        const until = (uid: string): number | null => (uid === 'a' ? null : uid.charCodeAt(0) - 94);
        const of = (list: string[]): Suspension[] => list.map((uid) => suspension(uid, { until: until(uid) }));
        const removed = complete ? [] : gone.filter((uid) => !listed.includes(uid));
        const state: SuspensionState = { sequence: 1, complete, suspensions: of(listed), removed };
        const merged = mergeSuspensions(of(before), state, now).map(({ uid }) => uid);
        const expected = [...'abcde'].filter((uid) => {
          const isListed = listed.includes(uid) || (!complete && before.includes(uid) && !removed.includes(uid));
          return isListed && isInForce(suspension(uid, { until: until(uid) }), now);
        });
        assert.deepEqual(merged, expected);
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
