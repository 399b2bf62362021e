import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { minuteOf, monthOf, type UsageReport, ZERO_COUNTERS } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { RefusalWatch } from '../../src/follow/refusal-watch.ts';
import { MemoryStore } from '../../src/memory/memory-store.ts';

const MINUTE_MS = 60_000;
const SLOT = { service: 'uid', tenant: 'shop', namespace: 'shop', name: 'web' };
const START = Date.UTC(2026, 0, 15, 12);

describe('a Service whose limit refuses clients', () => {
  test('is shown after the minute, and until five quiet minutes have passed', async () => {
    const { clock, refuse, shownAfter } = await openLedger();
    await clock.advance(10 * MINUTE_MS);
    await refuse(20);
    assert.deepEqual(await shownAfter(30_000), [], 'the minute is not over');
    assert.deepEqual(await shownAfter(34_999), [], 'the last reports of the minute may be missing');
    assert.deepEqual(await shownAfter(1), [20]);
    await refuse(9);
    for (let minute = 1; minute < 5; minute += 1) assert.deepEqual(await shownAfter(MINUTE_MS), [20], `${minute}`);
    assert.deepEqual(await shownAfter(MINUTE_MS), []);
  });

  test('is shown by a process that starts within these minutes', async () => {
    const { clock, refuse, newWatch } = await openLedger();
    await clock.advance(10 * MINUTE_MS);
    await refuse(20);
    await clock.advance(4 * MINUTE_MS);
    const watch = newWatch();
    await watch.update(clock.now());
    assert.equal(watch.shown.get('uid')?.refused, 20);
  });

  test('is not shown because of refusals that proxies report again after the ledger was restored', async () => {
    const { clock, store, refuse, shownAfter } = await openLedger();
    await clock.advance(10 * MINUTE_MS);
    store.faults.wipe();
    const rows = [{ ...SLOT, counters: { ...ZERO_COUNTERS, connections: 1_000 } }];
    await store.usage.seed({ months: [{ month: monthOf(START), rows }], bases: [] });
    await refuse(500);
    assert.deepEqual(await shownAfter(2 * MINUTE_MS), []);
    await clock.advance(MINUTE_MS);
    await refuse(20);
    assert.deepEqual(await shownAfter(2 * MINUTE_MS), [20]);
  });
});

test('each minute is read once, and again after a failure or if the clock was set back', async () => {
  const { clock, store, newWatch } = await openLedger();
  await clock.advance(10 * MINUTE_MS + 5_000);
  const watch = newWatch();
  store.faults.goAway();
  await assert.rejects(watch.update(clock.now()), { code: 'AWAY' });
  store.faults.comeBack();
  const read = countReads(store);
  await watch.update(clock.now());
  await watch.update(clock.now());
  assert.equal(read(), 5);
  await watch.update(clock.now() + MINUTE_MS);
  assert.equal(read(), 6);
  await watch.update(clock.now());
  await watch.update(clock.now() + MINUTE_MS);
  assert.equal(read(), 7);
});

function countReads({ usage }: MemoryStore): () => number {
  let reads = 0;
  const rows = usage.rows.bind(usage);
  usage.rows = (...args) => {
    reads += 1;
    return rows(...args);
  };
  return () => reads;
}

async function openLedger(): Promise<{
  readonly clock: ManualClock;
  readonly store: MemoryStore;
  readonly newWatch: () => RefusalWatch;
  /** Reports `count` further refusals of a limit. */
  readonly refuse: (count: number) => Promise<void>;
  /** Passes time, and returns the refused clients of each Service that is shown. */
  readonly shownAfter: (ms: number) => Promise<number[]>;
}> {
  const clock = new ManualClock(START);
  const store = new MemoryStore({ clock });
  await store.usage.seed({ months: [], bases: [] });
  let total = 0;
  const refuse = async (count: number): Promise<void> => {
    total += count;
    const points = [
      { minute: minuteOf(clock.now()), counters: { ...ZERO_COUNTERS, refused: { 'rate-limit': total } } },
    ];
    const slots = [{ ...SLOT, points }];
    const report: UsageReport = { node: 'a', life: 1, slots };
    await store.usage.flush(report);
  };
  const newWatch = (): RefusalWatch => new RefusalWatch(store);
  const watch = newWatch();
  const shownAfter = async (ms: number): Promise<number[]> => {
    await clock.advance(ms);
    await watch.update(clock.now());
    return [...watch.shown.values()].map(({ refused }) => refused);
  };
  return { clock, store, newWatch, refuse, shownAfter };
}
