import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoffMs, ManualClock, systemClock, wait } from '../src/index.ts';

test('runs due timers in order, each at its due time', async () => {
  const clock = new ManualClock(1_000_000);
  const ran: string[] = [];
  const note = (name: string) => () => void ran.push(`${name}@${clock.monotonic()}/${clock.now()}`);
  clock.setTimeout(note('late'), 30);
  clock.setTimeout(note('early'), 10);
  clock.setTimeout(note('second'), 10);
  clock.setTimeout(note('beyond'), 31);
  await clock.advance(30);
  assert.deepEqual(ran, ['early@10/1000010', 'second@10/1000010', 'late@30/1000030']);
  assert.equal(clock.pendingTimers, 1);
});

test('runs timers that a due timer sets asynchronously within the same advance', async () => {
  const clock = new ManualClock();
  const ran: number[] = [];
  const repeat = async (): Promise<void> => {
    await Promise.resolve();
    ran.push(clock.monotonic());
    clock.setTimeout(() => void repeat(), 10);
  };
  clock.setTimeout(() => void repeat(), 10);
  await clock.advance(35);
  assert.deepEqual(ran, [10, 20, 30]);
});

test('does not run a cancelled timer', async () => {
  const clock = new ManualClock();
  const timer = clock.setTimeout(() => assert.fail('the cancelled timer ran'), 10);
  timer.cancel();
  timer.cancel();
  await clock.advance(100);
  assert.equal(clock.pendingTimers, 0);
});

test('keeps the monotonic clock and the timers when the wall clock jumps', async () => {
  const clock = new ManualClock(50_000);
  let ran = false;
  clock.setTimeout(() => {
    ran = true;
  }, 10);
  clock.jumpWallClock(-20_000);
  assert.equal(clock.now(), 30_000);
  assert.equal(clock.monotonic(), 0);
  await clock.advance(9);
  assert.equal(ran, false);
  await clock.advance(1);
  assert.equal(ran, true);
});

test('wait resolves after the given time', async () => {
  const clock = new ManualClock();
  let isOver = false;
  const waiting = wait(clock, 10, new AbortController().signal).then(() => {
    isOver = true;
  });
  await clock.advance(9);
  assert.equal(isOver, false);
  await clock.advance(1);
  await waiting;
});

test('wait rejects with the abort reason, before and during the wait, and leaves no timer', async () => {
  const clock = new ManualClock();
  const abort = new AbortController();
  const waiting = wait(clock, 10, abort.signal);
  const reason = new Error('closing');
  abort.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(wait(clock, 10, abort.signal), reason);
  assert.equal(clock.pendingTimers, 0);
});

test('systemClock supports delays above the maximum of a Node timer', async (t) => {
  await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 0));
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let ran = false;
  const timer = systemClock.setTimeout(
    () => {
      ran = true;
    },
    2 ** 31 + 10_000,
  );
  t.mock.timers.tick(1_000_000);
  assert.equal(ran, false);
  timer.cancel();
});

test('backoffMs returns values between the minimum and a ceiling that doubles up to the maximum', () => {
  const span = (failures: number): number[] =>
    [0, 0.999_999].map((value) => backoffMs(failures, { minMs: 1000, maxMs: 30_000, random: () => value }));
  assert.deepEqual(span(1), [1000, 2000]);
  assert.deepEqual(span(2), [1000, 4000]);
  assert.deepEqual(span(4), [1000, 16_000]);
  assert.deepEqual(span(5), [1000, 30_000]);
  assert.deepEqual(span(100_000), [1000, 30_000]);
});
