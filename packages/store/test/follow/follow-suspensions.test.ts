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
import { createMemoryStore, type MemoryStore } from '../../src/memory/memory-store.ts';
import { cutoff } from '../contract/sample-data.ts';

describe('following the cut-offs', () => {
  test('tells those in force at first, and after each change', async (t) => {
    const store = createMemoryStore();
    await store.suspensions.put(cutoff('a'));
    const follower = follow(t, store);
    await follower.settled();
    await store.suspensions.put(cutoff('b'));
    await follower.settled();
    await store.suspensions.remove('a');
    await follower.settled();
    assert.deepEqual(follower.told, [['a'], ['a', 'b'], ['b']]);
  });

  test('a fresh store with none is told once, so that who waits can go on', async (t) => {
    const follower = follow(t, createMemoryStore());
    await follower.settled();
    assert.deepEqual(follower.told, [[]]);
  });

  test('they stay through an outage and a wipe, until the store is complete again', async (t) => {
    const store = createMemoryStore();
    await store.suspensions.put(cutoff('a'));
    await store.suspensions.put(cutoff('b'));
    await store.suspensions.put(cutoff('c'));
    await store.suspensions.markComplete();
    const follower = follow(t, store);
    await follower.settled();
    store.faults.goAway();
    await follower.clock.advance(60_000);
    store.faults.wipe();
    store.faults.comeBack();
    await follower.clock.advance(2_000);
    assert.deepEqual(follower.last(), ['a', 'b', 'c']);
    await store.suspensions.put(cutoff('d'));
    await store.suspensions.remove('b');
    await follower.settled();
    assert.deepEqual(follower.last(), ['a', 'c', 'd']);
    await store.suspensions.put(cutoff('c'));
    await store.suspensions.markComplete();
    await follower.settled();
    assert.deepEqual(follower.last(), ['c', 'd']);
    assert.deepEqual(follower.away, ['away', 'back']);
  });

  test('one whose time is over is told to be gone, though the store still lists it', async (t) => {
    const store = createMemoryStore();
    const follower = follow(t, store);
    const now = follower.clock.now();
    await store.suspensions.put(cutoff('a', { until: now + 5_000 }));
    await store.suspensions.put(cutoff('b', { until: now + 9_000 }));
    await store.suspensions.put(cutoff('past', { until: now }));
    await follower.settled();
    await follower.clock.advance(4_999);
    assert.deepEqual(follower.last(), ['a', 'b']);
    await follower.clock.advance(1);
    assert.deepEqual(follower.last(), ['b']);
    store.faults.goAway();
    await follower.clock.advance(4_000);
    assert.deepEqual(follower.last(), []);
  });

  test('starts from the copy on the disk, and lets it run out while the store is away', async (t) => {
    const store = createMemoryStore();
    store.faults.goAway();
    const clock = new ManualClock();
    const cutoffs = [cutoff('a'), cutoff('b', { until: clock.now() + 1_000 })];
    const follower = follow(t, store, { clock, from: { cutoffs, sequence: 4 } });
    await clock.advance(999);
    assert.deepEqual(follower.told, []);
    await clock.advance(1);
    assert.deepEqual(follower.told, [['a']]);
    store.faults.comeBack();
    await clock.advance(2_000);
    assert.deepEqual(follower.last(), ['a']);
    await store.suspensions.markComplete();
    await follower.settled();
    assert.deepEqual(follower.last(), []);
  });

  test('ends when the signal aborts, and leaves no timer', async (t) => {
    const store = createMemoryStore();
    const follower = follow(t, store);
    await store.suspensions.put(cutoff('a', { until: follower.clock.now() + 5_000 }));
    await follower.settled();
    await follower.stop();
    assert.equal(follower.clock.pendingTimers, 0);
  });

  test('rejects with what a listener throws, also at an end of time', async () => {
    const clock = new ManualClock();
    const store = createMemoryStore({ clock });
    await store.suspensions.put(cutoff('a', { until: clock.now() + 5_000 }));
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

describe('merging cut-offs', () => {
  test('complete: what is listed and in force; else also what was known, without what was removed', () => {
    const uids = fc.uniqueArray(fc.constantFrom<string>(...'abcde'));
    fc.assert(
      fc.property(uids, uids, uids, fc.boolean(), fc.nat(10), (before, listed, gone, complete, now) => {
        const until = (uid: string): number | null => (uid === 'a' ? null : uid.charCodeAt(0) - 94);
        const of = (list: string[]): Suspension[] => list.map((uid) => cutoff(uid, { until: until(uid) }));
        const removed = complete ? [] : gone.filter((uid) => !listed.includes(uid));
        const state: SuspensionState = { sequence: 1, complete, suspensions: of(listed), removed };
        const merged = mergeSuspensions(of(before), state, now).map(({ uid }) => uid);
        const expected = [...'abcde'].filter((uid) => {
          const isMeant = listed.includes(uid) || (!complete && before.includes(uid) && !removed.includes(uid));
          return isMeant && isInForce(cutoff(uid, { until: until(uid) }), now);
        });
        assert.deepEqual(merged, expected);
      }),
    );
  });
});

function follow(t: TestContext, store: MemoryStore, options: Partial<FollowSuspensionsOptions> = {}) {
  const clock = new ManualClock();
  const stopped = new AbortController();
  const told: string[][] = [];
  const away: string[] = [];
  const done = followSuspensions(store.suspensions, {
    signal: stopped.signal,
    clock,
    onSuspensions: (cutoffs) => void told.push(cutoffs.map(({ uid }) => uid)),
    onAway: () => void away.push('away'),
    onBack: () => void away.push('back'),
    ...options,
  });
  const stop = async (): Promise<void> => {
    stopped.abort();
    await done;
  };
  t.after(stop);
  return { told, away, clock, last: () => told.at(-1), settled: () => clock.advance(0), stop };
}
