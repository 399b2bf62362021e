import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoffMs, ManualClock, systemClock, wait } from '../src/index.ts';

test('due timers run in the order of their moments, at their moments', async () => {
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

test('timers that are set by what a timer has woken run within the same span', async () => {
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

test('a cancelled timer does not run', async () => {
  const clock = new ManualClock();
  const timer = clock.setTimeout(() => assert.fail('it ran'), 10);
  timer.cancel();
  timer.cancel();
  await clock.advance(100);
  assert.equal(clock.pendingTimers, 0);
});

test('setting the wall clock moves neither the monotonic one nor the timers', async () => {
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

test('waiting ends when the time is over', async () => {
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

test('waiting ends with the reason when it is aborted, before or meanwhile, and leaves no timer', async () => {
  const clock = new ManualClock();
  const abort = new AbortController();
  const waiting = wait(clock, 10, abort.signal);
  const reason = new Error('closing');
  abort.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(wait(clock, 10, abort.signal), reason);
  assert.equal(clock.pendingTimers, 0);
});

test('the system clock calls back, and not at once for more than Node can wait', async (t) => {
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

test('the wait after failures is anywhere between the least and a ceiling that doubles up to the most', () => {
  const span = (failures: number): number[] =>
    [0, 0.999_999].map((drawn) => backoffMs(failures, { minMs: 1000, maxMs: 30_000, random: () => drawn }));
  assert.deepEqual(span(1), [1000, 2000]);
  assert.deepEqual(span(2), [1000, 4000]);
  assert.deepEqual(span(4), [1000, 16_000]);
  assert.deepEqual(span(5), [1000, 30_000]);
  assert.deepEqual(span(100_000), [1000, 30_000]);
});
